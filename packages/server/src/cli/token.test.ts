import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { keyTag } from '../auth/key-tag.ts'
import { createTokens } from '../auth/tokens.ts'
import { actorOf, callLife } from '../call/decide.fixture.ts'
import { decideInvite } from '../call/invite.ts'
import type { Config } from '../config/config.ts'
import { openSqlite } from '../stores/sqlite/open.ts'
import { dataDir, json, run, useDataDirs } from './program.fixture.ts'
import { requireSecrets } from './signing.ts'

useDataDirs()

describe('token', () => {
  const mint = 'token --product shop --user ann --role customer --peer-role agent'
  const secretsFile = () => join(dataDir, 'jwt-secrets')
  const makeKey = () => run('keys create --product shop --key-id k')

  test('mint prints a token that the same data directory verifies, and says who signed', async () => {
    await makeKey()
    const minted = await json<{ token: string; signed_by: { kid: string; secrets: string } }>(
      `${mint} --peer-role boss --ttl 60 --name Ann --device d`,
    )
    const [kid = '', key = ''] = readFileSync(secretsFile(), 'utf8').trim().split(':')
    expect(minted).toMatchObject({
      ws_url: 'ws://127.0.0.1:8080/v1/ws',
      expires_at: '2026-01-01T00:01:00.000Z',
      signed_by: { kid, secrets: secretsFile() },
    } as never)
    const { code, out, err } = await run(`token verify ${minted.token}`)
    expect([code, err]).toEqual([0, ''])
    expect(JSON.parse(out)).toMatchObject({
      product: 'shop',
      user_id: 'ann',
      role: 'customer',
      display_name: 'Ann',
      allowed_peer_roles: ['agent', 'boss'],
      device_id: 'd',
      expires_at: '2026-01-01T00:01:00.000Z',
      revoked: false,
    })
    const told = await run(mint)
    expect(told.err).toBe(
      `Signed with the key ${kid} of ${secretsFile()}. A service with other secrets refuses it.\nTo call with it: ringwire phone --token -, which asks for it.\n`,
    )
    expect(told.out + told.err + JSON.stringify(minted)).not.toContain(key)
  })

  test('verify reads standard input: the token, a header, or what token printed', async () => {
    await makeKey()
    const text = await run(mint)
    const asJson = await run(`${mint} --json`)
    const { token } = JSON.parse(asJson.out)
    for (const input of [`${token}\n`, `Bearer ${token}`, `Authorization: Bearer ${token}\n`, text.out, asJson.out]) {
      for (const args of ['token verify', 'token verify -']) {
        expect(await run(args, { input })).toMatchObject({ code: 0, out: expect.stringContaining('"user_id": "ann"') })
      }
    }
  })

  test('the text form names the URL; behind a public URL it is that one', async () => {
    await makeKey()
    const { out } = await run(mint, { env: { RINGWIRE_PUBLIC_URL: 'https://calls.example.com' } })
    expect(out).toMatch(/Token +eyJ/)
    expect(out).toContain('wss://calls.example.com/v1/ws')
    expect((await run(`${mint} --json`, { env: { RINGWIRE_PORT: '0' } })).out).toContain('"ws_url": null')
  })

  test('verify says why not: 3, and nothing of the token or of a secret', async () => {
    await makeKey()
    const { token, signed_by } = await json<{ token: string; signed_by: { kid: string } }>(`${mint} --ttl 1`)
    const key = readFileSync(secretsFile(), 'utf8').trim().split(':')[1] ?? ''
    for (const [text, reason, options] of [
      [
        token,
        /^The token is authentic, but expired since 2026-01-01T00:00:01\.000Z\. It was for user ann, role customer, product shop\.$/m,
        { now: Date.UTC(2026, 0, 2) },
      ],
      [token.slice(0, -2), /^The signature is not one of the key k\w+ that is here: /, {}],
      ['rubbish', /^The token is malformed: /, {}],
      [
        token,
        new RegExp(`^The token is signed by an unknown kid, "${signed_by.kid}"\\. Known here: other\\.`),
        { env: { RINGWIRE_JWT_SECRETS: `other:${'A'.repeat(43)}` } },
      ],
    ] as const) {
      const { code, out, err } = await run(`token verify ${text}`, options)
      expect([code, out, err]).toEqual([3, '', expect.stringMatching(reason)])
      expect(err).toMatch(/^Checked with the keys of .*(jwt-secrets|RINGWIRE_JWT_SECRETS)\.$/m)
      for (const part of [...text.split('.').filter((part) => part.length > 10), key]) expect(err).not.toContain(part)
    }
  })

  test('[SRV2] verify refuses a token that was taken back, as the service does', async () => {
    await makeKey()
    const { token } = await json<{ token: string }>(mint)
    const later = await json<{ token: string }>(mint, { now: Date.now() + 60_000 })
    await run('participant disconnect customer ann --product shop')
    const { code, out, err } = await run(`token verify ${token}`)
    expect([code, out]).toEqual([3, ''])
    expect(err).toMatch(
      /^The token is authentic, but was revoked: tokens of user ann, role customer, product shop that were issued before \d{4}-[^ ]+Z do not count\.\n/,
    )
    expect(await run(`token verify ${later.token}`, { now: Date.now() + 60_000 })).toMatchObject({ code: 0, err: '' })
  })

  test('[KEY1] verify refuses a token whose product key is disabled, as the service does', async () => {
    await makeKey()
    await run(mint)
    const secrets = await requireSecrets({ dataDir, jwtSecrets: null } as Config)
    const tokens = createTokens({ secrets, ttlS: 3600, now: () => Date.UTC(2026, 0, 1) })
    const { token } = tokens.issue({
      participant: { product: 'shop', role: 'customer', userId: 'ann' },
      ...{ displayName: 'Ann', contextType: 'c', contextId: '1', allowedPeerRoles: ['agent'], key: keyTag('k') },
    })
    expect((await run(`token verify ${token}`)).code).toBe(0)
    await run('keys disable k')
    const { code, out, err } = await run(`token verify ${token}`)
    expect([code, out]).toEqual([3, ''])
    expect(err).toStartWith('The token is authentic, but the product key that it was issued with, k, is disabled.\n')
    await run('keys enable k')
    expect((await run(`token verify ${token}`)).code).toBe(0)
  })

  test('verify says what it did not look at where the store cannot be reached', async () => {
    await makeKey()
    const { token } = await json<{ token: string }>(mint)
    rmSync(join(dataDir, 'ringwire.db'))
    const none = await run(`token verify ${token}`)
    expect(none).toMatchObject({ code: 0, out: expect.stringContaining('"revoked": null') })
    expect(none.err).toMatch(
      /^Not checked: whether it was revoked, or its product key is disabled\. There is no data directory of a service at /,
    )
    writeFileSync(join(dataDir, 'ringwire.db'), 'no database'.repeat(100))
    const broken = await run(`token verify ${token}`)
    expect([broken.code, broken.err]).toEqual([0, expect.stringMatching(/^Not checked: .*RINGWIRE_DATA_DIR/)])
  })

  test('a product without a key is refused, with what to do, and no secrets are made', async () => {
    await run('keys create --product other --key-id k')
    const refused = await run(mint)
    expect(refused).toMatchObject({ code: 1, out: '' })
    expect(refused.err).toBe(
      `The product shop has no key in ${dataDir}, so no token is signed. Products with a key: other. To make one: ringwire keys create --product shop\n`,
    )
    await run('keys create --product shop --key-id mine')
    await run('keys disable mine')
    expect((await run(mint)).err).toContain('To enable one: ringwire keys enable mine\n')
    expect(existsSync(secretsFile())).toBe(false)
    await run('keys enable mine')
    expect((await run(mint)).code).toBe(0)
  })

  test('where no service has been, nothing is signed, verified or made', async () => {
    rmSync(dataDir, { recursive: true })
    const refused = await run(mint)
    expect(refused).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining(`at ${dataDir} (RINGWIRE_DATA_DIR)`),
    })
    expect(await run('token verify a.b.c')).toMatchObject({ code: 3, err: expect.stringContaining('There is no') })
    // A key of the environment is one, but the secrets have to be there, too.
    const env = { RINGWIRE_BOOTSTRAP_KEYS: `k:${'s'.repeat(32)}:shop` }
    expect(await run(mint, { env })).toMatchObject({ code: 3, err: expect.stringContaining('There is no') })
    expect(existsSync(dataDir)).toBe(false)
    const both = { ...env, RINGWIRE_JWT_SECRETS: `mine:${'A'.repeat(43)}` }
    const signed = await json<{ signed_by: object }>(mint, { env: both })
    expect(signed.signed_by).toEqual({ kid: 'mine', secrets: 'RINGWIRE_JWT_SECRETS' })
    expect(existsSync(dataDir)).toBe(false)
  })
})

describe('call history', () => {
  test('the calls of a participant, as text and as the REST answer', async () => {
    const stores = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive: true })
    for (const step of callLife()) await step(stores.calls)
    const [ann, bob] = [
      { product: 'shop', role: 'customer', userId: 'ann' },
      { product: 'shop', role: 'agent', userId: 'bob' },
    ]
    const callUuid = crypto.randomUUID()
    await stores.calls.invite(ann, bob, callUuid, (situation) =>
      decideInvite(
        situation,
        {
          actor: actorOf(ann),
          callee: bob,
          callUuid,
          freshUuid: crypto.randomUUID(),
          contextType: 'c',
          contextId: '1',
          callType: 'audio',
          ringTimeoutMs: 45_000,
          metadata: null,
          rate: { ok: true },
          maxRinging: 5,
          busy: 'allow',
        },
        Date.now(),
      ),
    )
    await stores.close()
    const args = 'call history --product shop --user ann --role customer'
    const page = await json<{ data: object[] }>(args)
    expect(page).toMatchObject({
      success: true,
      next_cursor: null,
      data: [{ call_uuid: callUuid, direction: 'outgoing' }],
    } as never)
    expect((await run(args)).out).toContain(callUuid)
    expect(await run('call history --product shop --user nobody --role x')).toMatchObject({
      code: 0,
      out: '',
      err: 'No calls of nobody, role x, in shop.\n',
    })
  })
})
