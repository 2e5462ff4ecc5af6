import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readDocument } from '@ringwire/testkit/documents'
import { findSystemProgram } from '../../../../scripts/system.mjs'
import { loadConfig, settingRows } from '../../src/config/config.ts'
import { deploy } from './compose.ts'

/* What of deploy/ringwire.service can be shown where systemd does not run. */

const work = mkdtempSync(join(tmpdir(), 'ringwire-systemd-'))
afterAll(() => rmSync(work, { recursive: true, force: true }))

const text = readFileSync(join(deploy, 'ringwire.service'), 'utf8')

/** The lines for a secret are comments until somebody has one. */
const withSecret = text.replaceAll(/^#(?=[A-Z]\w+=)/gm, '')

function analyzed(unit: string, ...args: string[]) {
  const file = join(work, 'ringwire.service')
  // The program need not be installed here.
  writeFileSync(file, unit.replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`))
  const { exitCode, stdout, stderr } = Bun.spawnSync([findSystemProgram('systemd') ?? 'systemd-analyze', ...args, file])
  return { exitCode, said: `${stdout}${stderr}` }
}

test('systemd-analyze verify finds nothing, also with a secret in a credential', () => {
  for (const unit of [text, withSecret]) {
    const { exitCode, said } = analyzed(unit, 'verify', '--man=no')
    expect([said, exitCode]).toEqual(['', 0])
  }
  expect(analyzed(`${text}\n[Service]\nProtectHome=perhaps\n`, 'verify', '--man=no').said).toContain('protect home')
})

test('systemd-analyze security: an exposure of 2 of 10 at the most', () => {
  const security = (unit: string) => analyzed(unit, 'security', '--offline=yes', '--threshold=20', '--no-pager')
  const { exitCode, said } = security(text)
  expect([exitCode, said.split('\n').filter((line) => line.includes('Overall'))]).toEqual([
    0,
    [expect.stringContaining('OK')],
  ])
  expect(security(text.replace(/^(?:CapabilityBoundingSet|SystemCallFilter|Protect\w+)=.*\n/gm, '')).exitCode).not.toBe(
    0,
  )
})

test('it names settings of the service alone, and gives a drain the time that it takes', () => {
  const settings = settingRows().flatMap(({ name, hasFile }) => (hasFile ? [name, `${name}_FILE`] : [name]))
  const named = [...withSecret.matchAll(/^Environment=(\w+)=/gm)].map(([, name = '']) => name)
  expect(named).toEqual(['RINGWIRE_DATA_DIR', 'RINGWIRE_TURN_SECRET_FILE'])
  expect(named.filter((name) => !settings.includes(name))).toEqual([])
  const loaded = loadConfig({})
  const [, stopS] = /^TimeoutStopSec=(\d+)$/m.exec(text) ?? []
  // What a stop takes at the most while a store is away: docs/operations.md.
  expect(Number(stopS) * 1000).toBeGreaterThanOrEqual((loaded.ok ? loaded.config.drainMs : Number.NaN) + 10_000)
})

test('docs/operations.md says what each part of the hardening takes from the service, and names no other', () => {
  const [, hardening = ''] = /^# What the service does not need\..*\n([\s\S]*?)\n\n/m.exec(text) ?? []
  const used = [...hardening.matchAll(/^(\w+)=/gm)].map(([, name = '']) => name)
  const [, table = ''] =
    /^\| Settings of the unit .*\n.*\n([\s\S]*?)\n\n/m.exec(readDocument('docs/operations.md')) ?? []
  const said = table.split('\n').flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)(…)?[^`]*`/g)])
  const isSaid = (name: string) => said.some(([, word = '', more]) => (more ? name.startsWith(word) : name === word))
  // No capability is left, so none can be handed on; an error instead of a kill changes no right.
  const implied = ['AmbientCapabilities', 'SystemCallErrorNumber']
  expect([...new Set(used)].filter((name) => !isSaid(name))).toEqual(implied)
  expect(said.filter(([, word = '']) => !text.includes(`\n${word}`)).map(([it]) => it)).toEqual([])
})
