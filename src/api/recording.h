// Notes for the audit log, taken on a request's way. All of them do nothing for requests that nobody records.
#pragma once

#include "api/call.h"

namespace holdfast::api {

// The object of a body, decoded and defaulted.
void record_request(Call& call, const Value& object);
// A body that is no object of the resource, as it was sent: a patch, options.
void record_request(Call& call, request::Format format, std::string_view bytes);
void record_response(Call& call, std::string_view content_type, const net::Body& body);
// A list that is sent in pieces.
void record_chunk(Call& call, std::string_view bytes);
void record_stream_end(Call& call);
void record_status(Call& call, const Value& status);
void record_error(Call& call, const Error& error);
// An annotation of the audit event.
void record_annotation(Call& call, std::string key, std::string value);

}  // namespace holdfast::api
