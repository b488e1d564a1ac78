// The resources of the server and their parts.
//
//   Registry ---> Served (one resource in one version)
//                   |- types::Resource     names, scope, verbs, type; as shown in discovery
//                   |- ObjectRules         defaults, conversion, strategy, validation
//                   |- Managers            who owns which field, by endpoint
//                   `- Storage             keys in the store and the watch cache; shared by all versions of a kind
//                        `- ObjectCodec    stored bytes <-> canonical body <-> tree
//
// Threading: a registry snapshot and everything reachable from it may be used from any thread. Lifetime: a request
// holds the snapshot it took, which keeps everything reachable from it alive.
#pragma once

#include "resource/managed.h"
#include "resource/managers.h"
#include "resource/object_codec.h"
#include "resource/object_rules.h"
#include "resource/registry.h"
#include "resource/storage.h"
#include "resource/stored_check.h"
