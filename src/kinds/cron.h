// Schedules of CronJobs. Private to the module.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::kinds {

// What is wrong with a schedule of five fields or a descriptor (@hourly, @every 5m); empty when it is right.
std::string cron_error(std::string_view schedule);

}  // namespace holdfast::kinds
