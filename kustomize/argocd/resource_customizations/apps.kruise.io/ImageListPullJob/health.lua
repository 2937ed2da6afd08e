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

local status = obj.status or {}
local succeeded, desired = status.succeeded or 0, status.desired or 0
local count = succeeded .. " of " .. desired .. " images are on all nodes"
local ended = status.completionTime ~= nil
if not ended and (obj.status == nil or (status.observedGeneration or obj.metadata.generation) ~= obj.metadata.generation) then
  return health("Progressing", "the operator has yet to observe the latest spec")
end
local failed = (status.failedImageStatuses or {})[1]
if not ended and (failed == nil or (status.active or 0) > 0) and succeeded < desired then
  return health("Progressing", count)
end
if failed ~= nil then
  return health("Degraded", failed.name .. ": " .. (failed.message or "some nodes could not pull the image"))
end
return health("Healthy", count)
