local Audit = { VERSION = "0.3.0", PRIORITY = 12 }

function Audit:access(conf)
  require("kong.plugins.audit.sinks.http").send(conf)
end

return Audit
