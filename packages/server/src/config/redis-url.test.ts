import { expect, test } from 'bun:test'
import { parseRedisUrl } from './redis-url.ts'
import { redisUrl } from './values.ts'

function addressOf(url: string) {
  const parsed = parseRedisUrl(url)
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.address
}

test('one server, Sentinel and a cluster, each with an account and defaults', () => {
  expect(addressOf('redis://127.0.0.1')).toMatchObject({
    kind: 'single',
    tls: false,
    hosts: [{ host: '127.0.0.1', port: 6379 }],
    username: undefined,
    password: undefined,
    database: 0,
  })
  expect(addressOf('rediss://app:s%2F%40%3f+%25@[2001:db8::1]:7000/3')).toMatchObject({
    kind: 'single',
    tls: true,
    hosts: [{ host: '2001:db8::1', port: 7000 }],
    username: 'app',
    password: 's/@?+%',
    database: 3,
  })
  expect(addressOf('redis://:secret@r.test/')).toMatchObject({ username: undefined, password: 'secret', database: 0 })
  expect(addressOf('redis+sentinel://u:p:q@a.test,b.test:27000/calls?sentinel_password=x%2B+y')).toMatchObject({
    kind: 'sentinel',
    hosts: [
      { host: 'a.test', port: 26379 },
      { host: 'b.test', port: 27000 },
    ],
    group: 'calls',
    username: 'u',
    password: 'p:q',
    sentinelUsername: undefined,
    sentinelPassword: 'x++y',
  })
  expect(addressOf('rediss+cluster://a.test,b.test:7001?ca=/etc/ca.pem&cert=/c%20d.pem&key=/k.pem')).toMatchObject({
    kind: 'cluster',
    tls: true,
    hosts: [
      { host: 'a.test', port: 6379 },
      { host: 'b.test', port: 7001 },
    ],
    ca: '/etc/ca.pem',
    cert: '/c d.pem',
    key: '/k.pem',
  })
})

test('what is wrong with a URL is said without any part of it', () => {
  const form = 'must be like redis://user:password@host:6379'
  for (const [url, problem] of [
    ['secret', form],
    ['http://u:secret@h', form],
    ['redis://', form],
    ['redis://u:secret@', form],
    ['redis://secret@h', form],
    ['redis://u:@h', form],
    ['redis://u:secret%zz@h', form],
    ['redis://u:sec/ret@h', form],
    ['redis://u:sec#ret@h', form],
    ['redis://u:sec ret@h', form],
    ['redis://u:secret@h:0', form],
    ['redis://u:secret@h:65536', form],
    ['redis://u:secret@h:12:34', form],
    ['redis://:sec?ret@h', form],
    ['redis://u:secret@h,i', 'names several hosts'],
    ['redis://u:secret@h/secret', 'has a path that is not the number of a database'],
    ['redis+cluster://u:secret@h/1', 'has a path: a cluster has no numbered databases'],
    ['redis+sentinel://u:secret@h', 'names no group of servers'],
    ['redis://u:secret@h?secret=1', 'has a query parameter that is none of ca, cert, key'],
    ['redis://h?ca=secret', 'names files for TLS: write rediss://'],
    ['rediss://h?cert=secret', 'needs both cert and key, or neither'],
    ['redis://h?sentinel_password=secret', 'has an account for Sentinel'],
    ['redis+sentinel://h/n?sentinel_username=secret', 'needs sentinel_password, too'],
  ] as const) {
    const parsed = redisUrl().parse(url)
    expect([url, parsed.ok]).toEqual([url, false])
    const found = parsed.ok ? '' : parsed.problem
    expect(found).toStartWith(problem)
    expect(found).not.toMatch(/secret|sec\b|ret\b|zz/)
  }
})

test('a server elsewhere without TLS warns', () => {
  const warning = ['has no TLS (rediss://): the connection to Redis is not encrypted']
  for (const url of ['redis://:secret@r.test', 'redis+cluster://localhost,r.test', 'redis+sentinel://r.test/calls']) {
    expect(redisUrl().parse(url)).toEqual({ ok: true, value: url, warnings: warning })
  }
  for (const url of ['rediss://:secret@r.test', 'redis://:secret@localhost:7000', 'redis+cluster://127.0.0.1,[::1]']) {
    expect(redisUrl().parse(url)).toEqual({ ok: true, value: url })
  }
})
