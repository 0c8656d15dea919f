#pragma once
// cjose signs and verifies; jansson reads the JSON around it, byte for byte and with repeated
// members refused; OpenSSL's digest is what both stand on.
#include <cjose/cjose.h>
#include <jansson.h>
#include <openssl/evp.h>
