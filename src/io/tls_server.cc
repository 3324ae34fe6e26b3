#include "io/tls_server.h"

#include <algorithm>
#include <climits>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

namespace io {
namespace {

using base::Result;

SSL* Of(void* ssl) { return static_cast<SSL*>(ssl); }

std::unexpected<base::Error> Wrong(const char* what) {
  char text[256];
  ERR_error_string_n(ERR_get_error(), text, sizeof text);
  ERR_clear_error();
  return base::Invalid(std::string(what) + ": " + text);
}

bool UseChain(SSL_CTX* context, const std::string& pem) {
  BIO* from = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* first = PEM_read_bio_X509(from, nullptr, nullptr, nullptr);
  bool good = first && SSL_CTX_use_certificate(context, first) == 1;
  X509_free(first);
  while (good) {
    X509* next = PEM_read_bio_X509(from, nullptr, nullptr, nullptr);
    if (!next) break;
    if (SSL_CTX_add0_chain_cert(context, next) == 1) continue;
    X509_free(next);
    good = false;
  }
  BIO_free(from);
  if (good) ERR_clear_error();  // that there was no further one
  return good;
}

bool UseKey(SSL_CTX* context, const std::string& pem) {
  BIO* from = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  // No terminal is asked for a password.
  const auto no_password = [](char*, int, int, void*) { return 0; };
  EVP_PKEY* key = PEM_read_bio_PrivateKey(from, nullptr, no_password, nullptr);
  const bool good = key && SSL_CTX_use_PrivateKey(context, key) == 1;
  EVP_PKEY_free(key);
  BIO_free(from);
  return good;
}

}  // namespace

Result<std::shared_ptr<const TlsIdentity>> TlsIdentity::Make(const std::string& certificate,
                                                             const std::string& key) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  if (!context) return Wrong("TLS");
  std::shared_ptr<const TlsIdentity> out(new TlsIdentity(context));
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  if (!UseChain(context, certificate)) return Wrong("the certificate cannot be read");
  if (!UseKey(context, key)) return Wrong("the key cannot be read");
  if (SSL_CTX_check_private_key(context) != 1)
    return Wrong("certificate and key do not belong together");
  return out;
}

TlsIdentity::~TlsIdentity() { SSL_CTX_free(static_cast<SSL_CTX*>(context_)); }

TlsConnection::TlsConnection(std::shared_ptr<const TlsIdentity> identity, int socket)
    : identity_(std::move(identity)), ssl_(SSL_new(static_cast<SSL_CTX*>(identity_->context_))) {
  if (!ssl_) throw std::bad_alloc();
  SSL_set_fd(Of(ssl_), socket);
  SSL_set_accept_state(Of(ssl_));
}

TlsConnection::~TlsConnection() { SSL_free(Of(ssl_)); }

TlsConnection::Now TlsConnection::Judge(int result) {
  const int error = SSL_get_error(Of(ssl_), result);
  ERR_clear_error();
  if (error == SSL_ERROR_WANT_READ) return Now::kWaitToRead;
  if (error == SSL_ERROR_WANT_WRITE) return Now::kWaitToWrite;
  return Now::kOver;
}

// What is left in OpenSSL's own buffer would not make the socket readable, so all of it is taken.
TlsConnection::Now TlsConnection::Read(std::string& in) {
  char buffer[16 << 10];
  do {
    const int got = SSL_read(Of(ssl_), buffer, sizeof buffer);
    if (got <= 0) return Judge(got);
    in.append(buffer, static_cast<size_t>(got));
  } while (SSL_pending(Of(ssl_)) > 0);
  return Now::kDone;
}

TlsConnection::Now TlsConnection::Write(std::string_view bytes, size_t& written) {
  const int size = static_cast<int>(std::min<size_t>(bytes.size(), INT_MAX));
  const int put = SSL_write(Of(ssl_), bytes.data(), size);
  if (put <= 0) return Judge(put);
  written += static_cast<size_t>(put);
  return Now::kDone;
}

void TlsConnection::Finish() {
  SSL_shutdown(Of(ssl_));
  ERR_clear_error();
}

}  // namespace io
