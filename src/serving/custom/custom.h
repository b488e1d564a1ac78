// Custom resources: the lifecycle of their definitions (CustomResources), the APIServices for their group versions
// (CustomServices), and the codec, rules and webhook conversion of their objects.
#pragma once

#include "custom/conversions.h"
#include "custom/custom_objects.h"
#include "custom/custom_resources.h"
#include "custom/custom_services.h"
