import { resolve } from 'node:path'
import { readSecretFile } from './secret-files.ts'
import { makesSecret } from './secret-hint.ts'
import { readSigningKey, type TokenKey } from './signing-key.ts'
import { items, type Parsed, type ValueType } from './values.ts'

/** A key that session tokens are signed with, and verified. */
export interface JwtSecret {
  readonly kid: string
  readonly key: TokenKey
  /** Where the private key is; a secret is in the list itself. */
  readonly file?: string
}

const bad = (problem: string): { ok: false; problem: string } => ({ ok: false, problem })

/** `kid:base64url` or `kid:file:PATH`, in a file also one a line; the first signs, all verify [TOK2]. */
export function jwtSecrets(): ValueType<readonly JwtSecret[] | null> {
  return {
    label: 'kid:base64url or kid:file:PATH,…',
    parse(value) {
      const secrets: JwtSecret[] = []
      for (const [index, entry] of items(value.replaceAll('\n', ',')).entries()) {
        const [, kid, given] = /^([\w.-]{1,64}):(file:.+|[\w-]+={0,2})$/.exec(entry) ?? []
        if (kid === undefined || given === undefined) {
          return bad(
            `entry ${index + 1} is not kid:base64url or kid:file:PATH (after the kid and a colon, ${makesSecret})`,
          )
        }
        const read = given.startsWith('file:') ? readKeyFile(kid, given.slice('file:'.length)) : readSecret(kid, given)
        if (!read.ok) return read
        if (secrets.some((secret) => secret.kid === kid)) return bad(`${kid} is there twice`)
        secrets.push(read.value)
      }
      if (secrets.length === 0) return bad(`holds no secret: after a kid and a colon, ${makesSecret}`)
      return { ok: true, value: secrets, secretFiles: secrets.flatMap(({ file }) => file ?? []) }
    },
  }
}

function readSecret(kid: string, encoded: string): Parsed<JwtSecret> {
  const key = Buffer.from(encoded, 'base64url')
  // RFC 7518 section 3.2: a key of the size of the hash output or larger.
  return key.length < 32
    ? bad(`the secret of ${kid} is under 32 bytes: ${makesSecret}`)
    : { ok: true, value: { kid, key } }
}

function readKeyFile(kid: string, path: string): Parsed<JwtSecret> {
  const file = resolve(path)
  const text = readSecretFile(file)
  if (!text.ok) return bad(`${kid} ${text.problem}`)
  const read = readSigningKey(text.value)
  return read.ok ? { ok: true, value: { kid, key: read.key, file } } : bad(`${kid}: ${file} ${read.problem}`)
}
