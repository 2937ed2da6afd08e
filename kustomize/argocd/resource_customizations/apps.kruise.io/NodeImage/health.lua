local function health(status, message)
  return {status = status, message = message}
end

if obj.metadata.deletionTimestamp ~= nil then
  local finalizers = table.concat(obj.metadata.finalizers or {}, ", ")
  if finalizers ~= "" then
    return health("Progressing", "Pending deletion; blocked by finalizers: " .. finalizers)
  end
  return health("Progressing", "Pending deletion")
end

local wanted, status = 0, obj.status or {}
for _, image in pairs((obj.spec or {}).images or {}) do
  wanted = wanted + #(image.tags or {})
end
local succeeded, failed = status.succeeded or 0, status.failed or 0
if (status.desired or 0) ~= wanted or succeeded + failed < wanted then
  return health("Progressing", succeeded .. " of " .. wanted .. " images are on the node")
end
if failed > 0 then
  return health("Degraded", failed .. " of " .. wanted .. " images could not be pulled")
end
return health("Healthy", "all images are on the node")
