// Schedules of CronJobs. Private to the module.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::kinds {

// The error in a schedule of five fields or a descriptor (@hourly, @every 5m); empty if it is valid.
std::string cron_error(std::string_view schedule);

}  // namespace holdfast::kinds
