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
if obj.status == nil or (status.observedGeneration or obj.metadata.generation) ~= obj.metadata.generation then
  return health("Progressing", "the operator has yet to observe the latest spec")
end
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local scheduling, run = conditions.Scheduling, conditions.LastRunSucceeded
if scheduling == nil and status.observedGeneration ~= nil then
  return health("Progressing", "waiting for condition Scheduling")
end

-- OpenKruise writes neither conditions nor a generation.
if scheduling == nil then
  if obj.spec.paused then
    return health("Suspended", "paused")
  end
  if #(status.active or {}) > 0 then
    return health("Healthy", "a job is active")
  end
  if status.lastScheduleTime == nil then
    return health("Progressing", "waiting for the first job")
  end
  return health("Healthy", "the last job was created at " .. status.lastScheduleTime)
end

if scheduling.reason == "Paused" then
  return health("Suspended", scheduling.message)
end
if scheduling.status ~= "True" and scheduling.reason ~= "JobActive" then
  return health("Degraded", scheduling.message)
end
if run ~= nil and run.status == "False" then
  return health("Degraded", run.message)
end
return health("Healthy", scheduling.message)
