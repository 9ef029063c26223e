local Alpha = { VERSION = "1.0.0", PRIORITY = 10 }

function Alpha:access(conf)
  kong.service.request.set_header("X-My-Header", conf.value)
end

return Alpha
