import { expect, test } from 'bun:test'
import { configuration } from './nginx.ts'

test('the configuration that is shipped, before one node, with what is kept in one directory', () => {
  const text = configuration(4430, 8123, { cert: '/made/cert.pem', key: '/made/key.pem' }, '/made')
  const values = (name: string) => [...text.matchAll(new RegExp(`^\\s*${name} (.*);$`, 'gm'))].map(([, value]) => value)
  expect(values('listen')).toEqual(['127.0.0.1:4430 ssl'])
  expect(values('server')).toEqual(['127.0.0.1:8123 max_fails=0'])
  expect(values('worker_processes')).toEqual(['1'])
  expect([...values('ssl_certificate'), ...values('ssl_certificate_key')]).toEqual(['/made/cert.pem', '/made/key.pem'])
  expect(text.match(/\/(?:var|etc)\//g)).toBeNull()
})
