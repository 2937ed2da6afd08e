obj.spec.updateStrategy = obj.spec.updateStrategy or {}
local fields = obj.spec.updateStrategy
if obj.kind ~= "CloneSet" or obj.apiVersion ~= "apps.kruise.io/v1alpha1" then
  fields.rollingUpdate = fields.rollingUpdate or {}
  fields = fields.rollingUpdate
end
fields.paused = true
return obj
