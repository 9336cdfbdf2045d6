// SHA-256 by OpenSSL's libcrypto, which libcurl has loaded anyway.
//
// Declared by hand, with OpenSSL's own tags, and without a single #include: <openssl/evp.h> brings in glibc's
// headers, which must not belong to this module (CNetwatchLinux tells why). The functions are those of
// EVP_DigestInit(3), the same since OpenSSL 1.1.0.
#ifndef CNETWATCH_CRYPTO_SHIM_H
#define CNETWATCH_CRYPTO_SHIM_H

typedef struct evp_md_ctx_st EVP_MD_CTX;
typedef struct evp_md_st EVP_MD;
typedef struct engine_st ENGINE;

extern EVP_MD_CTX *EVP_MD_CTX_new(void);
extern void EVP_MD_CTX_free(EVP_MD_CTX *context);
extern const EVP_MD *EVP_sha256(void);

// 1 is success. Without an engine the default implementation is used.
extern int EVP_DigestInit_ex(EVP_MD_CTX *context, const EVP_MD *type, ENGINE *engine);
extern int EVP_DigestUpdate(EVP_MD_CTX *context, const void *bytes, unsigned long count);
extern int EVP_DigestFinal_ex(EVP_MD_CTX *context, unsigned char *digest, unsigned int *count);

#endif
