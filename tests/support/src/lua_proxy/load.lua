-- Loads plugins as Kong does when it starts, and says in JSON what became of each.

local function encode(value)
  local kind = type(value)
  if kind == "table" and getmetatable(value) == nil then
    local parts = {}
    if value[1] ~= nil then
      for i, item in ipairs(value) do
        parts[i] = encode(item)
      end
      return "[" .. table.concat(parts, ",") .. "]"
    end
    for key, item in pairs(value) do
      parts[#parts + 1] = encode(tostring(key)) .. ":" .. encode(item)
    end
    table.sort(parts)
    return "{" .. table.concat(parts, ",") .. "}"
  end
  if kind == "number" or kind == "boolean" then
    return tostring(value)
  end
  local text = tostring(value):gsub('[%c"\\]', function(c)
    return string.format("\\u%04x", c:byte())
  end)
  return '"' .. text .. '"'
end

-- `file` is nil for what stands in for a module that Kong brings.
local function load(module)
  local ok, result = pcall(require, module)
  local answer = { ok = ok, file = package.searchpath(module, package.path) }
  if not ok then
    answer.error = tostring(result)
  elseif type(result) ~= "table" then
    answer.ok = false
    answer.error = module .. " returns a " .. type(result) .. ", not a table"
    result = nil
  end
  return answer, ok and result or nil
end

local plugins = {}
for name in (os.getenv("KONG_PLUGINS") or "bundled"):gmatch("[^,]+") do
  name = name:match("^%s*(.-)%s*$")
  if name ~= "" and name ~= "bundled" and name ~= "off" then
    local handler, code = load("kong.plugins." .. name .. ".handler")
    local schema, fields = load("kong.plugins." .. name .. ".schema")
    if code then
      handler.PRIORITY, handler.VERSION = code.PRIORITY, code.VERSION
    end
    if fields then
      schema.name = fields.name
    end
    plugins[name] = { handler = handler, schema = schema }
  end
end

local modules = {}
local asked = ngx.req.get_uri_args().module or {}
for _, module in ipairs(type(asked) == "table" and asked or { asked }) do
  modules[module] = load(module)
end

ngx.header.content_type = "application/json"
ngx.say(encode({ plugins = plugins, modules = modules }))
