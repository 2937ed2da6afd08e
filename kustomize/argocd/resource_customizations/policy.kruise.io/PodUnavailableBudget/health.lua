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
if status.observedGeneration ~= obj.metadata.generation then
  return health("Progressing", "the operator has yet to observe the latest spec")
end
for _, condition in ipairs(status.conditions or {}) do
  if condition.status == "True" and (condition.type ~= "Exhausted" or condition.reason == "InvalidSpec") then
    return health("Degraded", condition.message)
  end
end
return health("Healthy", (status.unavailableAllowed or 0) .. " pods may become unavailable")
