local Geo = { VERSION = "1.2.0", PRIORITY = 750 }

function Geo:access(conf)
  kong.service.request.set_header("X-My-Header", conf.value)
end

return Geo
