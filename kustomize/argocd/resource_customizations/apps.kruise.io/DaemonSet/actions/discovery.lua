local strategy = obj.spec.updateStrategy or {}
local paused = strategy.paused == true or (strategy.rollingUpdate or {}).paused == true
local rolls = strategy.type ~= "OnDelete"
return {
  pause = {disabled = paused or not rolls},
  resume = {disabled = not paused},
  restart = {disabled = paused},
}
