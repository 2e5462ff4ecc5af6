import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@ringwire/testkit/ports'
import { findSystemProgram } from '../../../../scripts/system.mjs'

export interface PgBouncer {
  /** The address of a database of the server behind it. */
  url(database: string): string
  log(): string
  stop(): Promise<void>
}

/** A PgBouncer before a server; `settings` are lines of its file. */
export async function startPgBouncer(server: string, settings: readonly string[]): Promise<PgBouncer> {
  const program = findSystemProgram('pgbouncer')
  if (program === undefined) throw new Error('PgBouncer is missing: node scripts/system.mjs pgbouncer')
  const { hostname, port: serverPort, username } = new URL(server)
  const port = await freePort()
  const directory = mkdtempSync(join(tmpdir(), 'ringwire-pgbouncer-'))
  const file = join(directory, 'pgbouncer.ini')
  writeFileSync(
    file,
    `[databases]
* = host=${hostname} port=${serverPort} user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
${settings.join('\n')}
`,
  )
  let user: string[] = []
  if (process.getuid?.() === 0) {
    // It refuses to run as root.
    const [uid, gid] = ['-u', '-g'].map((flag) => Number(Bun.spawnSync(['id', flag, 'postgres']).stdout.toString()))
    for (const path of [directory, file]) chownSync(path, uid as number, gid as number)
    user = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--']
  }
  const child = Bun.spawn([...user, program, file], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  let log = ''
  const reading = (async () => {
    for await (const bytes of child.stderr) log += new TextDecoder().decode(bytes)
  })()
  for (const begin = performance.now(); !log.includes('process up'); await Bun.sleep(20)) {
    if (child.exitCode !== null || performance.now() - begin > 30_000)
      throw new Error(`PgBouncer did not start: ${log}`)
  }
  return {
    url: (database) => `postgres://${username}@127.0.0.1:${port}/${database}`,
    log: () => log,
    async stop() {
      child.kill('SIGKILL')
      await Promise.all([child.exited, reading])
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
