#ifndef CNETWATCH_CURL_SHIM_H
#define CNETWATCH_CURL_SHIM_H

#include <curl/curl.h>

#endif
