local strategy = obj.spec.updateStrategy or {}
strategy.paused = nil
if strategy.rollingUpdate ~= nil then
  strategy.rollingUpdate.paused = nil
end
return obj
