/**
 * The keys that session tokens are signed with: from RINGWIRE_JWT_SECRETS, or made once in the data directory.
 *
 *   loadJwtSecrets(config) → the ring of keys for `createTokens`
 *   hasJwtSecrets(config)  → whether there are any yet
 *   writeJwtSecrets(ring)  → the ring as RINGWIRE_JWT_SECRETS takes it
 */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Config, JwtSecret } from '../config/config.ts'
import { jwtSecrets } from '../config/jwt-secrets.ts'

export const jwtSecretsFile = 'jwt-secrets'

export function loadJwtSecrets(config: Pick<Config, 'jwtSecrets' | 'dataDir'>): readonly JwtSecret[] {
  if (config.jwtSecrets !== null) return config.jwtSecrets
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 })
  const path = join(config.dataDir, jwtSecretsFile)
  const made = `k${randomBytes(4).toString('hex')}:${randomBytes(32).toString('base64url')}\n`
  const parsed = jwtSecrets().parse(readOrCreateSecret(path, made))
  if (!parsed.ok || parsed.value === null) throw new Error(`${path} ${parsed.ok ? 'is empty' : parsed.problem}`)
  return parsed.value
}

/** Whether tokens can have been issued: `loadJwtSecrets` makes keys where there are none. */
export function hasJwtSecrets(config: Pick<Config, 'jwtSecrets' | 'dataDir'>): boolean {
  return config.jwtSecrets !== null || existsSync(join(config.dataDir, jwtSecretsFile))
}

/** The ring in one line; with the files that it names, it is all that anybody needs to issue tokens. */
export function writeJwtSecrets(secrets: readonly JwtSecret[]): string {
  return secrets
    .map(({ kid, key, file }) =>
      key instanceof Uint8Array ? `${kid}:${Buffer.from(key).toString('base64url')}` : `${kid}:file:${file}`,
    )
    .join(',')
}

/**
 * The contents of the file; if it is missing, it is made with `content`, readable only by its owner. Processes that start
 * at once all get what the first of them wrote: the file appears under its name whole, or not at all.
 */
export function readOrCreateSecret(path: string, content: string): string {
  return readIfThere(path) ?? createSecret(path, content)
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  }
}

function createSecret(path: string, content: string): string {
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  const file = openSync(draft, 'wx', 0o600)
  try {
    writeSync(file, content)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  try {
    // Unlike a rename, a link never replaces what another process put there first.
    linkSync(draft, path)
    return content
  } catch (error) {
    if (isCode(error, 'EEXIST')) return readFileSync(path, 'utf8')
    throw error
  } finally {
    unlinkSync(draft)
  }
}

function isCode(error: unknown, code: string): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === code
}
