import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { encodeFrame, opcodes } from '@ringwire/testkit/frames'
import { exchange, RawSocket } from '@ringwire/testkit/raw-socket'
import { upgradeHead } from '@ringwire/testkit/raw-websocket'
import type { Service } from '@ringwire/testkit/service'
import { claimsOf, signingKeyEnv, signToken } from '../../support/session-tokens.ts'
import type { StartService } from './start.ts'

const byList = (token: string) => [`Sec-WebSocket-Protocol: jwt, ${token}`]
const byHeader = (token: string) => [`Authorization: Bearer ${token}`]

/** How a client gets in, and how it learns why not [WS1, WS2, TOK5]. */
export function registerAuthenticationScenarios(name: string, start: StartService): void {
  describe(`${name}: authentication`, () => {
    let service: Service
    let token: string
    let bad: Record<string, string>
    const sockets: RawSocket[] = []

    beforeAll(async () => {
      service = await start(signingKeyEnv)
      token = await service.token({ user_id: someone('guest'), role: 'agent' })
      bad = badTokens(token)
    })
    afterAll(async () => {
      for (const socket of sockets) socket.destroy()
      await service.dispose()
    })

    /** Sends an upgrade and waits for its answer. */
    async function knock(lines: readonly string[], target?: string) {
      const socket = new RawSocket(service.url)
      sockets.push(socket)
      return { socket, answer: await exchange(socket, upgradeHead(lines, target)) }
    }

    async function letIn(lines: readonly string[]) {
      const { socket, answer } = await knock(lines)
      expect(answer.status).toBe(101)
      await socket.until((it) => it.texts.length > 0, 'auth.ok')
      expect(JSON.parse(socket.texts[0]!)).toMatchObject({ event: 'auth.ok', success: true })
      return { socket, selected: selectedProtocols(answer.head) }
    }

    const entrances: [string, (token: string) => string[], string[]][] = [
      ['the list jwt, token', (it) => [`Sec-WebSocket-Protocol: jwt, ${it}`], ['jwt']],
      ['the list token, jwt', (it) => [`Sec-WebSocket-Protocol: ${it}, jwt`], ['jwt']],
      ['the list without spaces', (it) => [`Sec-WebSocket-Protocol: jwt,${it}`], ['jwt']],
      ['two header lines', (it) => ['Sec-WebSocket-Protocol: jwt', `Sec-WebSocket-Protocol: ${it}`], ['jwt']],
      ['the header alone', byHeader, []],
      ['a header in another case', (it) => [`authorization: bearer ${it}`], []],
      ['both', (it) => [...byList(it), ...byHeader(it)], ['jwt']],
      ['both, the list naming jwt alone', (it) => ['Sec-WebSocket-Protocol: jwt', ...byHeader(it)], ['jwt']],
      ['a good header and a bad list', (it) => [...byList(`${it}x`), ...byHeader(it)], ['jwt']],
      ['a good list beside a scheme that is not ours', (it) => [...byList(it), 'Authorization: Basic YTpi'], ['jwt']],
    ]
    for (const [how, lines, protocols] of entrances) {
      test.concurrent(`[WS1] ${how}: let in, exactly jwt selected where it was offered, no byte of the token back`, async () => {
        const { socket, selected } = await letIn(lines(token))
        expect(selected).toEqual(protocols)
        const everything = socket.received.toString('latin1')
        for (const part of token.split('.')) expect(everything).not.toContain(part)
      })
    }

    test.concurrent('[WS1] with both, the header decides: a bad one is refused beside a good list', async () => {
      const { answer } = await knock([...byList(token), ...byHeader(bad.unknown!)])
      expect(answer.status).toBe(401)
      expect(errorCode(answer.body)).toBe('AUTH_TOKEN_INVALID')
    })

    for (const parameter of ['token', 'access_token', 'jwt', 'authorization', 'Token']) {
      test.concurrent(`[WS1] a token in the URL (${parameter}) is refused, also beside a good credential`, async () => {
        for (const lines of [[], byList(token), byHeader(token)]) {
          const { answer } = await knock(lines, `/v1/ws?${parameter}=${token}`)
          expect(answer.status).toBe(401)
          expect(errorCode(answer.body)).toBe('AUTH_TOKEN_INVALID')
          expect(answer.head + answer.body).not.toContain(token.slice(0, 20))
        }
      })
    }

    test.concurrent('[WS1] a query that holds no token changes nothing', async () => {
      const { answer } = await knock(byList(token), '/v1/ws?ext=1&resume=&n=%')
      expect(answer.status).toBe(101)
    })

    const nothing: [string, string[]][] = [
      ['no credential', []],
      ['another scheme', ['Authorization: Basic YTpi']],
      ['a scheme without a token', ['Authorization: Bearer']],
      ['an empty header', ['Authorization:']],
      ['a list without jwt', ['Sec-WebSocket-Protocol: chat, superchat']],
      ['a list with JWT in capitals', ['Sec-WebSocket-Protocol: JWT, abc']],
    ]
    for (const [what, lines] of nothing) {
      test.concurrent(`[WS2] ${what}: HTTP 401 AUTH_TOKEN_REQUIRED with the REST error body`, async () => {
        const { answer } = await knock(lines)
        expect(answer.status).toBe(401)
        expect(JSON.parse(answer.body)).toEqual({
          success: false,
          error: { code: 'AUTH_TOKEN_REQUIRED', message: expect.any(String) },
        })
        expect(answer.head).toMatch(/content-type: application\/json/i)
        expect(answer.head).toMatch(/www-authenticate: Bearer/i)
        expect(answer.head).toMatch(/x-content-type-options: nosniff/i)
      })
    }

    for (const lines of [['Sec-WebSocket-Protocol: jwt'], ['Sec-WebSocket-Protocol: jwt, jwt']]) {
      test.concurrent(`[WS2] ${lines[0]}: upgraded, call.error AUTH_TOKEN_REQUIRED, then 4401`, async () => {
        const { socket, answer } = await knock(lines)
        expect(answer.status).toBe(101)
        expect(await refusedOn(socket)).toEqual({ codes: ['AUTH_TOKEN_REQUIRED'], closeCode: 4401 })
      })
    }

    for (const kind of badKinds) {
      test.concurrent(`[WS2] ${kind} token in the header: HTTP 401 AUTH_TOKEN_INVALID`, async () => {
        const { answer } = await knock(byHeader(bad[kind]!))
        expect(answer.status).toBe(401)
        expect(JSON.parse(answer.body)).toEqual({
          success: false,
          error: { code: 'AUTH_TOKEN_INVALID', message: expect.any(String) },
        })
        expect(answer.head + answer.body).not.toContain(bad[kind]!.slice(0, 24))
      })

      test.concurrent(`[WS2] ${kind} token in the list: upgraded with jwt, call.error in both shapes, then 4401`, async () => {
        const { socket, answer } = await knock(byList(bad[kind]!))
        expect(answer.status).toBe(101)
        expect(selectedProtocols(answer.head)).toEqual(['jwt'])
        expect(await refusedOn(socket)).toEqual({ codes: ['AUTH_TOKEN_INVALID'], closeCode: 4401 })
      })
    }

    test.concurrent('[WS2] a socket that was refused is not heard', async () => {
      const { socket } = await knock(byList(bad.unknown!))
      socket.write(encodeFrame(opcodes.text, '{"event":"call.end","request_id":"r"}'))
      expect(await refusedOn(socket)).toEqual({ codes: ['AUTH_TOKEN_INVALID'], closeCode: 4401 })
    })

    registerHandshakes(
      (head) => {
        const socket = new RawSocket(service.url)
        sockets.push(socket)
        return exchange(socket, head)
      },
      () => token,
    )

    test.concurrent('[HTTP1] the path without an upgrade: 426 with the REST error body', async () => {
      const socket = new RawSocket(service.url)
      sockets.push(socket)
      const answer = await exchange(socket, 'GET /v1/ws HTTP/1.1\r\nHost: localhost\r\n\r\n')
      expect(answer.status).toBe(426)
      expect(errorCode(answer.body)).toBe('UPGRADE_REQUIRED')
    })

    test.concurrent('[HTTP1] a Host header that is no host: refused with the REST error body, and nothing about the service', async () => {
      const lines = byList(token)
      for (const host of ['[::', 'a b', 'a:b:c', '%', '\x7f']) {
        const socket = new RawSocket(service.url)
        sockets.push(socket)
        const answer = await exchange(socket, upgradeHead(lines, '/v1/ws', host))
        if (answer.status === 101) continue
        expect([400, 404]).toContain(answer.status)
        expect(answer.body).not.toContain('html')
        expect(answer.body).not.toContain('.ts')
      }
      expect(service.log).not.toContain('ERR_INVALID_URL')
    })
  })

  registerBadTokens(name, start)
  registerOrigins(name, start)
}

const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
const version = 'Sec-WebSocket-Version: 13'

/** The service answers what is wrong with an upgrade before it looks at the token [WS1]. */
function registerHandshakes(ask: (head: string) => ReturnType<typeof exchange>, token: () => string): void {
  const headOf = (request: string, lines: readonly string[]) => `${[request, ...lines].join('\r\n')}\r\n\r\n`
  const asked = ['Host: localhost', 'Connection: keep-alive, Upgrade', 'Upgrade: WebSocket']
  const bothWays = async (request: string, lines: readonly string[]) => {
    const answers = [await ask(headOf(request, lines)), await ask(headOf(request, [...lines, ...byHeader(token())]))]
    return answers.map(({ status, head, body }) => ({ status, head, code: errorCode(body) }))
  }

  for (const line of ['Sec-WebSocket-Version: 12', 'Sec-WebSocket-Version: 8, 13', 'X-Nothing: 1']) {
    test.concurrent(`[WS1] ${line}: 426 with the version that is spoken, before any 401`, async () => {
      for (const keys of [[key], [], ['Sec-WebSocket-Key: short']]) {
        for (const { status, head, code } of await bothWays('GET /v1/ws HTTP/1.1', [...asked, line, ...keys])) {
          expect([status, code]).toEqual([426, 'UPGRADE_REQUIRED'])
          expect(head).toMatch(/^upgrade: websocket\r?$/im)
          expect(head).toMatch(/^sec-websocket-version: 13\r?$/im)
        }
      }
    })
  }

  const keys = [
    'X-Nothing: 1',
    'Sec-WebSocket-Key:',
    'Sec-WebSocket-Key: abc',
    `Sec-WebSocket-Key: ${'!'.repeat(22)}==`,
  ]
  for (const line of [...keys, `${key}\r\n${key}`]) {
    test.concurrent(`[WS1] ${JSON.stringify(line)} as the key: 400 INVALID_UPGRADE, before any 401`, async () => {
      for (const { status, code } of await bothWays('GET /v1/ws HTTP/1.1', [...asked, version, line])) {
        expect([status, code]).toEqual([400, 'INVALID_UPGRADE'])
      }
    })
  }

  const plain: [string, string, readonly string[]][] = [
    ['over HTTP/1.0', 'GET /v1/ws HTTP/1.0', asked.slice(1)],
    ['without Connection: Upgrade', 'GET /v1/ws HTTP/1.1', ['Host: localhost', 'Upgrade: websocket']],
    ['with Connection: close', 'GET /v1/ws HTTP/1.1', ['Host: localhost', 'Connection: close', 'Upgrade: websocket']],
    ['to another protocol', 'GET /v1/ws HTTP/1.1', ['Host: localhost', 'Connection: Upgrade', 'Upgrade: h2c']],
  ]
  for (const [how, request, lines] of plain) {
    test.concurrent(`[WS1] an upgrade ${how} is answered like a plain request`, async () => {
      for (const { status, code } of await bothWays(request, [...lines, key, version])) {
        expect([status, code]).toEqual([426, 'UPGRADE_REQUIRED'])
      }
    })
  }

  for (const offered of ['graphql-ws', 'graphql-ws, chat', 'JWT', () => token(), () => `chat, ${token()}`]) {
    const list = typeof offered === 'string' ? offered : 'a token'
    test.concurrent(`[WS1] offered ${list} without jwt: none is selected`, async () => {
      const text = typeof offered === 'string' ? offered : offered()
      const lines = [...asked, key, version, ...byHeader(token()), `Sec-WebSocket-Protocol: ${text}`]
      const { status, head } = await ask(headOf('GET /v1/ws HTTP/1.1', lines))
      expect([status, selectedProtocols(head)]).toEqual([101, []])
    })
  }
}

/** A bad token is answered as such, however many came [TOK5]. */
function registerBadTokens(name: string, start: StartService): void {
  test(`${name}: [TOK5] a bad session token is 401 or 4401, however often; the budget is for product credentials alone`, async () => {
    const service = await start({ ...signingKeyEnv, RINGWIRE_TOKEN_FAIL_RATE_IP: '2/60' })
    try {
      const token = await service.token({ user_id: someone('guest'), role: 'agent' })
      const bad = badTokens(token)
      const upgrade = async (lines: readonly string[]) => {
        const socket = new RawSocket(service.url)
        const answer = await exchange(socket, upgradeHead(lines))
        const code = answer.status === 101 ? (await refusedOn(socket, 'or auth.ok')).codes[0] : errorCode(answer.body)
        socket.destroy()
        return { status: answer.status, code, head: answer.head }
      }
      for (let i = 0; i < 6; i++) {
        for (const kind of ['forged', 'unknown-kid', 'expired']) {
          const byStatus = await upgrade(byHeader(bad[kind]!))
          expect(byStatus).toMatchObject({ status: 401, code: 'AUTH_TOKEN_INVALID' })
          expect(byStatus.head).toMatch(/connection: close/i)
          expect(await upgrade(byList(bad[kind]!))).toMatchObject({ status: 101, code: 'AUTH_TOKEN_INVALID' })
        }
      }
      const guess = () =>
        fetch(`${service.url}/v1/call/session-token`, {
          method: 'POST',
          headers: { 'X-SVC-Product-Key-ID': 'nobody', 'X-SVC-Product-Secret': 'wrong' },
        })
      const statuses = []
      for (let i = 0; i < 3; i++) statuses.push((await guess()).status)
      expect(statuses).toEqual([401, 401, 429])
      expect(await upgrade(byHeader(bad.forged!))).toMatchObject({ status: 401, code: 'AUTH_TOKEN_INVALID' })
      expect(await upgrade(byList(token))).toMatchObject({ status: 101, code: 'auth.ok' })
    } finally {
      await service.dispose()
    }
  })
}

function registerOrigins(name: string, start: StartService): void {
  test(`${name}: [WS8] a page of another origin is closed with 4403; a listed one and a client without one are not`, async () => {
    const service = await start({ RINGWIRE_ALLOWED_ORIGINS: 'https://app.example.com,http://Localhost:3000' })
    try {
      const token = await service.token({ user_id: someone('guest'), role: 'agent' })
      const outcome = async (lines: readonly string[]) => {
        const socket = new RawSocket(service.url)
        const answer = await exchange(socket, upgradeHead(lines))
        expect(answer.status).toBe(101)
        const { codes, closeCode } = await refusedOn(socket, 'or auth.ok')
        socket.destroy()
        return closeCode ?? codes[0]
      }
      for (const lines of [byList(token), byHeader(token)]) {
        expect(await outcome(lines)).toBe('auth.ok')
        for (const origin of ['https://app.example.com', 'http://localhost:3000', 'HTTPS://App.Example.com']) {
          expect(await outcome([...lines, `Origin: ${origin}`])).toBe('auth.ok')
        }
        for (const origin of [
          'https://evil.example.com',
          'http://app.example.com',
          'https://app.example.com.evil.com',
          'https://app.example.com:444',
          'null',
        ]) {
          expect(await outcome([...lines, `Origin: ${origin}`])).toBe(4403)
        }
      }
    } finally {
      await service.dispose()
    }
  })
}

const badKinds = [
  'unknown',
  'empty-signature',
  'forged',
  'unsigned',
  'wrong-algorithm',
  'wrong-audience',
  'early',
  'expired',
  'claimless',
  'unknown-kid',
] as const

/** Every way in which a token can be wrong. */
function badTokens(token: string): Record<string, string> {
  const claims = claimsOf(token)
  const [head, body] = token.split('.')
  const none = Buffer.from('{"alg":"none","kid":"k1"}').toString('base64url')
  const nowS = Math.floor(Date.now() / 1000)
  return {
    unknown: 'not-a-token-at-all-but-some-text',
    'empty-signature': `${head}.${body}.`,
    forged: signToken(claims, { key: Buffer.alloc(32, 8) }),
    unsigned: `${none}.${body}.`,
    'wrong-algorithm': signToken(claims, { header: { alg: 'HS512' }, hash: 'sha512' }),
    'wrong-audience': signToken({ ...claims, aud: 'somebody-else' }),
    early: signToken({ ...claims, nbf: nowS + 120 }),
    expired: signToken({ ...claims, iat: nowS - 7200, exp: nowS - 120 }),
    claimless: signToken({
      iss: 'ringwire',
      aud: 'ringwire',
      sub: 'x',
      iat: nowS,
      nbf: nowS,
      exp: nowS + 60,
      jti: 'j',
    }),
    'unknown-kid': signToken(claims, { header: { kid: 'k9' } }),
  }
}

/** The first thing that a socket hears, and its close code if it was closed for it. */
async function refusedOn(socket: RawSocket, or?: 'or auth.ok') {
  await socket.until(
    (it) => it.closeCode !== undefined || (or !== undefined && it.texts.some((text) => text.includes('"auth.ok"'))),
    'a close frame',
  )
  const codes = socket.texts.map((text) => {
    const message = JSON.parse(text)
    if (message.event !== 'call.error') return message.event as string
    expect(message.data.error).toEqual(message.error)
    return message.error.code as string
  })
  return { codes, closeCode: socket.closeCode }
}

function selectedProtocols(head: string): string[] {
  return [...head.matchAll(/^sec-websocket-protocol: *(.*)$/gim)].map(([, value]) => value!.trim())
}

function errorCode(body: string): string | undefined {
  return JSON.parse(body).error?.code
}
