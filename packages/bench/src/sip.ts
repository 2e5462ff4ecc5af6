// Kamailio as a SIP proxy that stays in the dialogs, and SIPp as both ends of the calls that it carries. All over TCP: an
// INVITE with a browser's session description is longer than a datagram may be (RFC 3261 section 18.1.1).
import { Database } from 'bun:sqlite'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '@ringwire/testkit/ports'
import { findSystemProgram } from '../../../scripts/system.mjs'
import { processesOf } from './parts.ts'
import { pinned, type ServerProcess, startServer } from './process.ts'
import { calleeScenario, callerScenario } from './sip-scenarios.ts'

/** Of Debian's kamailio-sqlite-modules. */
const SCHEMA_DIRECTORY = '/usr/share/kamailio/db_sqlite'
/** Transactions stay in its memory for five seconds, with their messages. */
const SHARED_MB = 2048
const CALLS_WITHIN_S = 100
const LISTENS_WITHIN_MS = 10_000
const ACCOUNTED_FLAG = 1
const ACCOUNTED_WITHIN_MS = 10_000

export interface SipProxy extends ServerProcess {
  /** The database of its accounting; null without. */
  accounts: string | null
}

/** What is missing, as a note; undefined where nothing is. */
export function missingForSip(): string | undefined {
  const isHere = findSystemProgram('kamailio') !== undefined && existsSync(SCHEMA_DIRECTORY)
  const missing = [...(isHere ? [] : ['kamailio']), ...(findSystemProgram('sipp') === undefined ? ['sipp'] : [])]
  if (missing.length === 0) return undefined
  return `sip: not measured. To bring what it needs: node scripts/system.mjs ${missing.join(' ')}`
}

/** The configuration of a proxy that stays in each dialog, forwards to one callee, and writes a row for INVITE and for BYE. */
export function proxySettings(port: number, calleePort: number, accounts: string | null): string {
  const modules = ['tm', 'sl', 'rr', 'pv', 'xlog', 'maxfwd', 'textops', 'siputils', 'sanity', 'dialog']
  const accounting = accounts === null ? [] : ['db_sqlite', 'acc']
  const account = accounts === null ? '' : `setflag(${ACCOUNTED_FLAG});`
  return `#!KAMAILIO
debug=1
log_stderror=yes
disable_core_dump=yes
auto_aliases=no
# One worker for the one core.
children=1
tcp_children=1
listen=tcp:127.0.0.1:${port}
# The first worker of UDP says that it is ready.
listen=udp:127.0.0.1:${port}
${[...modules, ...accounting].map((module) => `loadmodule "${module}.so"`).join('\n')}
modparam("rr", "append_fromtag", 1)
${
  accounts === null
    ? ''
    : `modparam("acc", "db_url", "sqlite:///${accounts}")
modparam("acc", "db_flag", ${ACCOUNTED_FLAG})`
}
event_route[core:worker-one-init] {
  xlog("L_ALERT", "The proxy is ready\\n");
}
request_route {
  if (!mf_process_maxfwd_header("10")) { sl_send_reply("483", "Too Many Hops"); exit; }
  if (!sanity_check()) exit;
  if (has_totag()) {
    if (loose_route()) {
      ${account === '' ? '' : `if (is_method("BYE")) ${account}`}
      t_relay();
    } else if (is_method("ACK")) {
      if (t_check_trans()) t_relay();
    } else sl_send_reply("404", "Not Found");
    exit;
  }
  if (!is_method("INVITE")) { sl_send_reply("405", "Method Not Allowed"); exit; }
  t_check_trans();
  record_route();
  ${account}
  dlg_manage();
  $du = "sip:127.0.0.1:${calleePort};transport=tcp";
  if (!t_relay()) sl_reply_error();
}
`
}

export async function startProxy(
  name: string,
  calleePort: number,
  isAccounting: boolean,
  core: number | null,
  directory: string,
): Promise<SipProxy> {
  const own = join(directory, `${name}-${crypto.randomUUID()}`)
  mkdirSync(own)
  const port = await freePort()
  const accounts = isAccounting ? createAccounts(own) : null
  const file = join(own, 'kamailio.cfg')
  writeFileSync(file, proxySettings(port, calleePort, accounts))
  const program = findSystemProgram('kamailio')!
  // It writes its log to the standard error output.
  const command = [
    'sh',
    '-c',
    'exec "$0" "$@" 2>&1',
    program,
    '-DD',
    '-E',
    '-m',
    String(SHARED_MB),
    '-w',
    own,
    '-f',
    file,
  ]
  const listens = { line: /The proxy is ready/, port }
  const server = await startServer({ name, command, env: {}, listens }, core, directory)
  const processes = processesOf(server.pid)
  const killNow = () => processes.forEach(kill)
  process.on('exit', killNow)
  const stop = async () => {
    await server.stop()
    process.off('exit', killNow)
  }
  return { ...server, accounts, stop }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended already.
  }
}

function createAccounts(directory: string): string {
  const file = join(directory, 'accounts.sqlite')
  using database = new Database(file, { create: true })
  // Its commits and its readers are like those of Ringwire then.
  database.run('PRAGMA journal_mode = WAL')
  for (const table of ['standard', 'acc'])
    database.run(readFileSync(join(SCHEMA_DIRECTORY, `${table}-create.sql`), 'utf8'))
  return file
}

/** Fails where not each of the calls has one row for its INVITE and one for its BYE. The last row comes after the last answer. */
export async function checkAccounts(file: string, calls: number, withinMs = ACCOUNTED_WITHIN_MS): Promise<void> {
  using database = new Database(file, { readonly: true })
  const query = database.query<{ calls: number }, [string]>(
    "SELECT count(DISTINCT callid) AS calls FROM acc WHERE method = ? AND sip_code = '200'",
  )
  const deadline = performance.now() + withinMs
  for (const method of ['INVITE', 'BYE']) {
    const found = () => query.get(method)!.calls
    while (found() < calls && performance.now() < deadline) await Bun.sleep(10)
    if (found() !== calls) throw new Error(`Of ${calls} calls ${found()} have their ${method} in the accounts`)
  }
}

/** The callee of all calls, until it is stopped. */
export async function startCallee(
  core: number | null,
  directory: string,
): Promise<Pick<ServerProcess, 'port' | 'stop'>> {
  const port = await freePort()
  const command = [...sippCommand('callee', calleeScenario(), directory), '-p', String(port)]
  const child = Bun.spawn(pinned(command, core), { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' })
  const killNow = () => kill(child.pid)
  process.on('exit', killNow)
  const stop = async () => {
    child.kill('SIGKILL')
    await child.exited
    process.off('exit', killNow)
  }
  // SIPp does not say when it listens, and takes a connection that only asks for one of a call.
  const deadline = performance.now() + LISTENS_WITHIN_MS
  while (!isListening(readFileSync('/proc/net/tcp', 'utf8'), port)) {
    if (child.exitCode !== null || performance.now() > deadline) {
      await stop()
      throw new Error(`SIPp does not listen on port ${port}; it ended with ${child.exitCode}`)
    }
    await Bun.sleep(10)
  }
  return { port, stop }
}

/** Whether `/proc/net/tcp` shows a socket that listens on that port of 127.0.0.1. */
export function isListening(sockets: string, port: number): boolean {
  return sockets.includes(` 0100007F:${port.toString(16).toUpperCase().padStart(4, '0')} 00000000:0000 0A `)
}

/** Gives the seconds that the calls took, some at a time; each has to be established and ended. */
export async function callThrough(
  proxy: SipProxy,
  calls: number,
  atATime: number,
  core: number | null,
  directory: string,
): Promise<number> {
  const command = [
    ...sippCommand('caller', callerScenario(), directory),
    ...['-p', String(await freePort()), '-m', String(calls), '-users', String(atATime), '-timer_resol', '1'],
    ...['-timeout', `${CALLS_WITHIN_S}s`, '-timeout_error', `127.0.0.1:${proxy.port}`],
  ]
  const begin = performance.now()
  const child = Bun.spawn(pinned(command, core), { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [screen, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  const seconds = (performance.now() - begin) / 1000
  if ((await child.exited) !== 0)
    throw new Error(`SIPp: not all calls were made. ${errors.slice(-300)}${screen.slice(-500)}`)
  return seconds
}

function sippCommand(name: string, scenario: string, directory: string): string[] {
  const file = join(directory, `${name}.xml`)
  writeFileSync(file, scenario)
  return [findSystemProgram('sipp')!, '-sf', file, '-i', '127.0.0.1', '-t', 't1', '-nostdin']
}
