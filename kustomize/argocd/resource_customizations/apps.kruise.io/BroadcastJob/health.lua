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
local succeeded, failed, desired = status.succeeded or 0, status.failed or 0, status.desired or 0
local count = succeeded .. " of " .. desired .. " nodes have succeeded"
local ended = false
for _, condition in ipairs(status.conditions or {}) do
  if condition.status == "True" and condition.type == "Failed" then
    return health("Degraded", status.message or condition.message or count)
  end
  ended = ended or condition.status == "True" and condition.type == "Complete"
end
if not ended and (obj.status == nil or (status.observedGeneration or obj.metadata.generation) ~= obj.metadata.generation) then
  return health("Progressing", "the operator has yet to observe the latest spec")
end
if status.phase == "paused" then
  return health("Suspended", status.message or "it is paused")
end
local policy = (obj.spec.completionPolicy or {}).type
if not ended and (policy ~= "Never" or (status.active or 0) > 0 or succeeded + failed < desired) then
  return health("Progressing", count)
end
if failed > 0 then
  return health("Degraded", failed .. " of " .. desired .. " nodes have failed")
end
return health("Healthy", count)
