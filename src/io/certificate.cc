#include "io/certificate.h"

#include <ctime>
#include <memory>

#include <openssl/pem.h>
#include <openssl/x509.h>

namespace io {
namespace {

base::Result<base::Time> TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return base::Invalid("a time that cannot be read");
  return base::Time(std::chrono::seconds(timegm(&parts)));
}

}  // namespace

base::Result<Validity> ValidityOf(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr), X509_free);
  if (!certificate) return base::Invalid("not a certificate in PEM form");
  return Validity{.from = TRY(TimeOf(X509_get0_notBefore(certificate.get()))),
                  .to = TRY(TimeOf(X509_get0_notAfter(certificate.get())))};
}

}  // namespace io
