import { jwtSecrets } from '../jwt-secrets.ts'
import { duration, setting, unset } from '../setting.ts'
import { type BootstrapKey, bootstrapKeys, integer } from '../values.ts'

/** What signs session tokens, who may ask for them, and how long they last. */
export const tokens = {
  jwtSecrets: unset(
    'RINGWIRE_JWT_SECRETS',
    jwtSecrets(),
    null,
    'unset: made once in the data directory',
    'Keys of session tokens: secrets of 32 bytes or more (HS256), as k1: and what openssl rand -hex 32 prints, or files with a private key of Ed25519 (EdDSA) or P-256 (ES256), PEM. The first signs, all verify.',
    { secret: true },
  ),
  bootstrapKeys: unset(
    'RINGWIRE_BOOTSTRAP_KEYS',
    bootstrapKeys(),
    [] as readonly BootstrapKey[],
    'unset: none',
    'Product keys that exist from the start; one that is no longer listed is disabled.',
    { secret: true },
  ),
  tokenTtlS: setting('RINGWIRE_TOKEN_TTL_S', integer(1, 86_400), '3600', 'Lifetime of a session token.', { unit: 's' }),
  tokenGraceMs: duration(
    'RINGWIRE_TOKEN_GRACE_MS',
    30_000,
    'How long a socket stays after its token expired, or after its last call if that is later.',
  ),
}
