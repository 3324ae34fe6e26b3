#include "io/testing/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/result.h"

namespace io::testing {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

template <typename Write>
std::string Pem(Write write) {
  BIO* out = BIO_new(BIO_s_mem());
  CHECK(write(out) == 1);
  char* text = nullptr;
  const long length = BIO_get_mem_data(out, &text);
  std::string pem(text, static_cast<size_t>(length));
  BIO_free(out);
  return pem;
}

Key NewKey() { return Key(EVP_EC_gen("P-256"), EVP_PKEY_free); }

void Extend(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  CHECK(extension);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

Certificate Draft(const Subject& subject, EVP_PKEY* key) {
  static long serial = 0;
  Certificate out(X509_new(), X509_free);
  X509_set_version(out.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(out.get()), ++serial);
  X509_time_adj_ex(X509_getm_notBefore(out.get()), subject.valid_from_days, 0, nullptr);
  X509_time_adj_ex(X509_getm_notAfter(out.get()), subject.valid_from_days + subject.valid_days, 0,
                   nullptr);
  X509_set_pubkey(out.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(out.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(subject.name.c_str()), -1, -1,
                             0);
  return out;
}

std::string PemOf(X509* certificate) {
  return Pem([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

}  // namespace

struct Authority::Keys {
  Key key{nullptr, EVP_PKEY_free};
  Certificate certificate{nullptr, X509_free};
};

Authority::Authority(const std::string& name) : keys_(std::make_unique<Keys>()) {
  keys_->key = NewKey();
  keys_->certificate = Draft({.name = name}, keys_->key.get());
  X509* certificate = keys_->certificate.get();
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  Extend(certificate, NID_basic_constraints, "critical,CA:TRUE");
  Extend(certificate, NID_key_usage, "critical,keyCertSign");
  CHECK(X509_sign(certificate, keys_->key.get(), EVP_sha256()) > 0);
  certificate_ = PemOf(certificate);
}

Authority::~Authority() = default;

KeyPair Authority::Issue(const Subject& subject) const {
  const Key key = NewKey();
  const Certificate certificate = Draft(subject, key.get());
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(keys_->certificate.get()));
  std::string names = "DNS:" + subject.name;
  if (!subject.address.empty()) names += ",IP:" + subject.address;
  Extend(certificate.get(), NID_subject_alt_name, names);
  CHECK(X509_sign(certificate.get(), keys_->key.get(), EVP_sha256()) > 0);
  return {.certificate = PemOf(certificate.get()),
          .key = Pem([&](BIO* out) {
            return PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace io::testing
