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
for _, subset in ipairs(status.subsetStatuses or {}) do
  for _, condition in ipairs(subset.conditions or {}) do
    if condition.type == "Schedulable" and condition.status == "False" then
      return health("Healthy", "pods pass subset " .. subset.name .. " over: " .. (condition.message or condition.reason))
    end
  end
end
return health("Healthy", "all subsets get pods")
