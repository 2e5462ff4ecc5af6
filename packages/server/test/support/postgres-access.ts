import { chownSync, copyFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '@ringwire/testkit/patience'
import { SQL } from 'bun'
import type { Postgres } from './postgres.ts'

/** An authority that is thrown away with its directory. */
export interface Authority {
  /** Its certificate, PEM. */
  readonly file: string
}

function openssl(directory: string, ...args: readonly string[]): void {
  const made = Bun.spawnSync(['openssl', ...args], { cwd: directory })
  if (!made.success) throw new Error(`openssl: ${made.stderr.toString()}`)
}

export function makeAuthority(directory: string, name: string): Authority {
  const files = ['-keyout', `${name}.key`, '-out', `${name}.pem`]
  openssl(directory, 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', `/CN=${name}`, ...files)
  return { file: join(directory, `${name}.pem`) }
}

/** A certificate of that authority for a host name: `server.key` and `server.pem`. */
function makeCertificate(directory: string, authority: string, host: string): void {
  const files = ['-keyout', 'server.key', '-out', 'server.csr']
  openssl(directory, 'req', '-newkey', 'rsa:2048', '-nodes', '-subj', `/CN=${host}`, ...files)
  writeFileSync(join(directory, 'names'), `subjectAltName=DNS:${host}`)
  const signing = ['-CA', `${authority}.pem`, '-CAkey', `${authority}.key`, '-CAcreateserial', '-extfile', 'names']
  openssl(directory, 'x509', '-req', '-in', 'server.csr', '-days', '1', ...signing, '-out', 'server.pem')
}

/**
 * From now on everybody but the superuser of the tests needs TLS and a password. The server's certificate comes from the
 * authority `name` in the directory, only for `localhost`.
 */
export async function demandTlsAndPasswords(server: Postgres, directory: string, name: string): Promise<void> {
  makeCertificate(directory, name, 'localhost')
  const { uid, gid } = statSync(server.dataDir)
  for (const file of ['server.key', 'server.pem']) {
    const copy = join(server.dataDir, file)
    copyFileSync(join(directory, file), copy)
    Bun.spawnSync(['chmod', '600', copy])
    chownSync(copy, uid, gid)
  }
  const rules = ['host all ringwire 127.0.0.1/32 trust', 'hostssl all all 127.0.0.1/32 scram-sha-256']
  writeFileSync(join(server.dataDir, 'pg_hba.conf'), `${rules.join('\n')}\n`)
  for (const [setting, value] of Object.entries({
    ssl_cert_file: 'server.pem',
    ssl_key_file: 'server.key',
    ssl: 'on',
  })) {
    await server.query(`ALTER SYSTEM SET ${setting} = '${value}'`)
  }
  await server.query('SELECT pg_reload_conf()')
  // The server reads its files a moment later.
  await until('the server takes TLS', () => takesTls(server))
}

async function takesTls(server: Postgres): Promise<boolean> {
  const sql = new SQL({ url: `${server.url()}?sslmode=require`, max: 1 })
  try {
    await sql.connect()
    return true
  } catch {
    return false
  } finally {
    await sql.close({ timeout: 0 })
  }
}
