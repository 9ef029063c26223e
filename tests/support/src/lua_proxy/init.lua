-- Kong's global, and whatever modules come with Kong and are not on this machine, are things that can be called and indexed
-- without end: a plugin gets as far as it would in Kong as long as it is only loaded. A plugin's own modules are never made up.

local thing = {}
setmetatable(thing, {
  __index = function() return thing end,
  __call = function() return thing end,
})

local brought = { "^kong%.", "^resty%.", "^pl%.", "^cjson$", "^cjson%.", "^socket$", "^socket%.", "^lyaml$", "^lpeg$", "^ngx%." }

table.insert(package.loaders, function(module)
  if module:find("^kong%.plugins%.") then
    return nil
  end
  for _, pattern in ipairs(brought) do
    if module:find(pattern) then
      return function() return thing end
    end
  end
end)

kong = thing
