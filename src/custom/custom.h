// Custom resources: their definitions' life (CustomResources), the APIServices of their group versions
// (CustomServices), and what their objects need: codec, rules, and conversion between versions by webhook.
#pragma once

#include "custom/conversions.h"
#include "custom/custom_objects.h"
#include "custom/custom_resources.h"
#include "custom/custom_services.h"
