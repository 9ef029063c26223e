local Beta = { VERSION = "2.1.0", PRIORITY = 20 }

function Beta:access(conf)
  kong.service.request.set_header("X-My-Header", conf.value)
end

return Beta
