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
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local ready, stalled = conditions.Ready, conditions.Stalled
if stalled ~= nil and stalled.status == "True" then
  return health("Degraded", stalled.message)
end
local strategy = obj.spec.updateStrategy or {}
local updated = status.updatedReplicas or status.updatedNumberScheduled or 0
local replicas = status.replicas or status.desiredNumberScheduled or 0

-- OpenKruise writes no condition Ready. Then counters decide, as the strategy of the version has its fields.
if ready == nil then
  local rolling = strategy.rollingUpdate or {}
  if strategy.paused or rolling.paused then
    return health("Suspended", "the update is paused")
  end
  local wanted = obj.spec.replicas or replicas
  local available = status.availableReplicas or status.numberAvailable or 0
  if available < wanted then
    return health("Progressing", available .. " of " .. wanted .. " pods available")
  end
  local partition = tostring(strategy.partition or rolling.partition or 0)
  local percent = tonumber(string.match(partition, "^(%d+)%%$") or 0)
  local kept = tonumber(partition) or math.ceil(wanted * percent / 100)
  local expected = status.expectedUpdatedReplicas or math.max(0, wanted - kept)
  if updated < expected and strategy.type ~= "OnDelete" then
    return health("Progressing", updated .. " of " .. expected .. " pods updated")
  end
  ready = {status = "True", message = "all pods are available"}
end

if ready.status ~= "True" then
  return health("Progressing", ready.message)
end
if ready.reason == "Paused" then
  return health("Suspended", ready.message)
end
if updated < replicas and strategy.type ~= "OnDelete" then
  return health("Suspended", updated .. " of " .. replicas .. " pods are updated, as the partition allows")
end
return health("Healthy", ready.message)
