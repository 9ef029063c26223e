local MyHeader = { VERSION = "1.1.0", PRIORITY = 1000 }

function MyHeader:access(conf)
  kong.response.set_header("X-My-Header", conf.value)
end

return MyHeader
