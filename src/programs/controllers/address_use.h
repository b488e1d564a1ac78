// Whether a range of addresses may go, given the ranges that remain. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "base/ip.h"

namespace holdfast::controllers {

using Networks = std::vector<IpNetwork>;

// Whether an address of this network can be given to a Service: the network's own address cannot, nor can the broadcast
// address of IPv4.
bool offers(const IpNetwork& network, const IpAddress& address);

// Whether each of the leaving networks is part of a remaining one, so that no address has to be looked at.
bool covered(const Networks& leaving, const Networks& remaining);

// Whether this address, which is in use, would be in no network any more.
bool orphaned(const Networks& leaving, const Networks& remaining, const IpAddress& address);

}  // namespace holdfast::controllers
