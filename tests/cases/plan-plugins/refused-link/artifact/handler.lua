local MyHeader = { VERSION = "1.0.0", PRIORITY = 1000 }

function MyHeader:access(conf)
  kong.service.request.set_header("X-My-Header", conf.value)
end

return MyHeader
