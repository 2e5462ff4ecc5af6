/** What a failed connection says of the certificate at the other end. */

/** No authority that is trusted here has signed it. */
const untrusted = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/** In words for the operator; undefined if the certificate is not the reason. */
export function certificateProblem(error: unknown, url: URL): string | undefined {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const whose = `The certificate of https://${url.host}`
  if (untrusted.has(code)) {
    return `${whose} is not trusted (${code}). NODE_EXTRA_CA_CERTS names a PEM file of the authority that signed it.`
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `${whose} is of another name.`
  return code.startsWith('CERT_') ? `${whose} is not valid (${code}).` : undefined
}
