// The resources that the server has, and what each of them consists of.
//
//   Registry ---> Served (one resource in one version)
//                   |- types::Resource     names, scope, verbs, type; as discovery shows it
//                   |- ObjectRules         defaults, conversion, strategy, validation
//                   |- Managers            who owns which field, by endpoint
//                   `- Storage             keys in the store and the watch cache; shared by all versions of a kind
//                        `- ObjectCodec    stored bytes <-> canonical body <-> tree
//
// Threading: a registry snapshot and everything it leads to may be used from any thread. Lifetime: a request holds the
// snapshot that it took; what it leads to lives as long.
#pragma once

#include "resource/managed.h"
#include "resource/managers.h"
#include "resource/object_codec.h"
#include "resource/object_rules.h"
#include "resource/registry.h"
#include "resource/storage.h"
#include "resource/stored_check.h"
#include "resource/uid.h"
