// Relays that npm cannot bring, beside which Ringwire is measured: which are here, and how each is started.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '@ringwire/testkit/ports'
import { findSystemProgram, type SystemPackage } from '../../../scripts/system.mjs'
import { XMPP_HOST } from './dialects/xmpp.ts'
import type { ServerCommand } from './process.ts'

export const PEERS = ['nats', 'prosody', 'loop'] as const
export type PeerName = (typeof PEERS)[number]

export const PEER_TITLES: Record<PeerName, string> = { nats: 'NATS', prosody: 'Prosody', loop: 'C loop' }

/** The package of scripts/system.mjs that each needs. */
const NEEDS: Record<PeerName, SystemPackage> = { nats: 'nats', prosody: 'prosody', loop: 'c-compiler' }

export interface Peers {
  here: PeerName[]
  /** A line for each that is left out, and the command that brings what it needs. */
  notes: string[]
}

export function findPeers(find: (name: SystemPackage) => string | undefined = findSystemProgram): Peers {
  const here = PEERS.filter((peer) => find(NEEDS[peer]) !== undefined)
  const missing = PEERS.filter((peer) => !here.includes(peer))
  const notes = missing.map(
    (peer) => `${PEER_TITLES[peer]} is left out. To bring it: node scripts/system.mjs ${NEEDS[peer]}`,
  )
  return { here, notes }
}

export async function peerCommand(peer: PeerName, directory: string): Promise<ServerCommand> {
  const program = findSystemProgram(NEEDS[peer])
  if (program === undefined) throw new Error(`${PEER_TITLES[peer]} is missing: node scripts/system.mjs ${NEEDS[peer]}`)
  const own = join(directory, `${peer}-${crypto.randomUUID()}`)
  mkdirSync(own)
  const port = await freePort()
  switch (peer) {
    case 'nats':
      return natsCommand(program, own, port)
    case 'prosody':
      return prosodyCommand(program, own, port)
    case 'loop':
      return { name: peer, command: [compileLoop(program, own)], env: {} }
  }
}

function natsCommand(program: string, directory: string, port: number): ServerCommand {
  const file = join(directory, 'nats.conf')
  // The listener for clients that are no browsers, on any port, is not used.
  const settings = ['host: "127.0.0.1"', 'port: -1', `websocket { host: "127.0.0.1", port: ${port}, no_tls: true }`]
  writeFileSync(file, `${settings.join('\n')}\n`)
  // It writes its log to the standard error output.
  const command = ['sh', '-c', 'exec "$0" "$@" 2>&1', program, '-c', file]
  return { name: 'nats', command, env: {}, listens: { line: /Listening for websocket clients/, port } }
}

/** Its own modules, and the two that a client over WebSocket needs; no other server, no other way in. */
function prosodyCommand(program: string, directory: string, port: number): ServerCommand {
  const file = join(directory, 'prosody.cfg.lua')
  const settings = [
    `run_as_root = ${process.getuid?.() === 0}`,
    `data_path = "${directory}"`,
    `pidfile = "${join(directory, 'pid')}"`,
    'log = { info = "*console" }',
    'modules_enabled = { "saslauth", "websocket" }',
    'modules_disabled = { "s2s" }',
    'consider_websocket_secure = true',
    'c2s_ports = {}',
    'https_ports = {}',
    'network_settings = { tcp_backlog = 1024 }',
    `http_ports = { ${port} }`,
    'http_interfaces = { "127.0.0.1" }',
    `VirtualHost "${XMPP_HOST}"`,
    'authentication = "anonymous"',
    'http_host = "127.0.0.1"',
  ]
  writeFileSync(file, `${settings.join('\n')}\n`)
  const command = [program, '-F', '--config', file]
  return {
    name: 'prosody',
    command,
    env: {},
    listens: { line: new RegExp(`${XMPP_HOST}:http\\b.*Serving 'websocket'`), port },
  }
}

function compileLoop(compiler: string, directory: string): string {
  const program = join(directory, 'loop')
  const source = join(import.meta.dir, 'peers', 'loop.c')
  const { exitCode, stderr } = Bun.spawnSync([compiler, '-O2', '-o', program, source])
  if (exitCode !== 0) throw new Error(`peers/loop.c was not compiled: ${stderr.toString().slice(0, 500)}`)
  return program
}
