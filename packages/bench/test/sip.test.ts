import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { callThrough, checkAccounts, isListening, proxySettings, startCallee, startProxy } from '../src/sip.ts'

describe('isListening', () => {
  const head = '  sl  local_address rem_address   st tx_queue rx_queue\n'
  const row = (address: string, state: string) => `${head}   0: ${address} 00000000:0000 ${state} 00000000:00000000\n`
  test('a socket that listens on that port', () => expect(isListening(row('0100007F:1F90', '0A'), 8080)).toBe(true))
  test('not one on another port', () => expect(isListening(row('0100007F:1F91', '0A'), 8080)).toBe(false))
  test('not one that is only connected', () => expect(isListening(row('0100007F:1F90', '01'), 8080)).toBe(false))
})

test('only a proxy with accounts loads the accounting', () => {
  expect(proxySettings(1, 2, '/tmp/accounts')).toContain('"sqlite:////tmp/accounts"')
  expect(proxySettings(1, 2, null)).not.toMatch(/acc|setflag|sqlite/)
})

describe('Kamailio and SIPp', () => {
  test.each(['with', 'without'])(
    'every call is answered and ended; %s accounting',
    async (which) => {
      const directory = mkdtempSync(join(tmpdir(), 'ringwire-test-'))
      const callee = await startCallee(null, directory)
      const proxy = await startProxy('proxy', callee.port, which === 'with', null, directory)
      try {
        await callThrough(proxy, 30, 5, null, directory)
        if (proxy.accounts !== null) {
          await checkAccounts(proxy.accounts, 30)
          await expect(checkAccounts(proxy.accounts, 31, 0)).rejects.toThrow('Of 31 calls 30 have their INVITE')
        }
      } finally {
        await proxy.stop()
        await callee.stop()
        rmSync(directory, { recursive: true, force: true })
      }
    },
    240_000,
  )
})
