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
if status.phase ~= "Completed" then
  return health("Progressing", status.phase or "waiting for the node agent")
end
for _, container in ipairs(status.containerRecreateStates or {}) do
  if container.phase ~= "Succeeded" then
    return health("Degraded", "container " .. container.name .. ": " .. (container.message or status.message or container.phase))
  end
end
if #(status.containerRecreateStates or {}) == 0 then
  return health("Degraded", status.message or "no container was recreated")
end
return health("Healthy", "all containers were recreated")
