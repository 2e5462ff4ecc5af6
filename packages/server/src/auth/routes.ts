/** GET /.well-known/jwks.json [KEY1]. */

import type { JwtSecret } from '../config/config.ts'
import { publicJwks } from '../config/signing-key.ts'
import { json } from '../http/replies.ts'

/** How long the document may be kept, in s: a key is promoted that long after it was added, or later. */
const maxAgeS = 300

/** The keys are those of the start: what a node says of them never changes. */
export function createJwksEndpoint({ secrets }: { readonly secrets: readonly JwtSecret[] }) {
  const jwks = publicJwks(secrets)
  return (): Response => json(200, jwks, { 'Cache-Control': `public, max-age=${maxAgeS}` })
}
