/** What commands print where somebody looks at it, and where a program reads it. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type Box, createBox } from './command.ts'
import { startInTerminal } from './typist.ts'

let box: Box
beforeEach(() => {
  box = createBox()
})
afterEach(() => box.clean())

async function seen(args: string, env: Record<string, string> = {}): Promise<string> {
  const { out } = await startInTerminal(args.split(' '), { RINGWIRE_DATA_DIR: box.dataDir, ...env }).ended
  return out.replaceAll('\r\n', '\n')
}
const esc = '\u001b'

test('a table in a terminal has a line and colours, none with NO_COLOR; elsewhere it is as programs know it', async () => {
  await box.run('keys create --product 会議 --key-id one')
  await box.run('keys create --product shop --key-id two')
  await box.run('keys disable two')
  const coloured = await seen('keys list')
  expect(coloured).toContain(`${esc}[1mKEY ID${esc}[0m`)
  expect(coloured).toContain(`${esc}[32menabled${esc}[0m`)
  expect(coloured).toContain(`${esc}[31mdisabled${esc}[0m`)
  const plain = await seen('keys list', { NO_COLOR: '1' })
  expect(plain).not.toContain(esc)
  const lines = plain.split('\n')
  expect(lines[1]).toMatch(/^─+( {2}─+)+$/)
  // Columns are under each other: a sign of Chinese is two wide.
  const columns = lines
    .slice(0, 4)
    .map((line) => Bun.stringWidth(line.slice(0, line.search(/STATE|─ {2}─{8} |enabled|disabled/))))
  expect(new Set([columns[0], columns[2], columns[3]]).size).toBe(1)
  expect(await seen('keys list', { TERM: 'dumb' })).not.toContain(esc)
  const piped = await box.run('keys list')
  for (const sign of [esc, '─']) expect(piped.out).not.toContain(sign)
  expect(piped.out.split('\n')[0]).toMatch(/^KEY ID {2}PRODUCTS {2}STATE {5}ORIGIN {2}CREATED$/)
  // Who asks for JSON gets JSON.
  expect(JSON.parse(await seen('keys list --json'))).toHaveLength(2)
})

test('token and token verify: fields in a terminal, lines and JSON elsewhere', async () => {
  await box.run('keys create --product shop')
  const mint = 'token --product shop --user ann --role customer --peer-role agent'
  const minted = await box.run(mint)
  expect(minted.out).toMatch(/^Token {4}eyJ\S+\nURL {6}\(any port.*\)\nExpires {2}\S+Z\n$/)
  const token = /^Token +(\S+)/.exec(minted.out)?.[1] ?? ''
  expect(await seen(mint)).toContain(`${esc}[1mToken${esc}[0m    eyJ`)
  const verified = await seen(`token verify ${token}`, { NO_COLOR: '1' })
  expect(verified).toStartWith('The token is valid.\n')
  expect(verified).toMatch(/^user_id +ann$/m)
  expect(verified).toMatch(/^expires_at +\S+Z$/m)
  expect(JSON.parse(await seen(`token verify --json ${token}`)).user_id).toBe('ann')
  expect(JSON.parse((await box.run(`token verify ${token}`)).out).user_id).toBe('ann')
})
