import { expect, test } from 'bun:test'
import { createWsUrl } from './ws-url.ts'

test('[TOK6] the public URL decides where there is one, with its path', () => {
  const from = 'http://127.0.0.1:8080/v1/call/session-token'
  expect(createWsUrl({ publicUrl: 'https://calls.example.com' })(from)).toBe('wss://calls.example.com/v1/ws')
  expect(createWsUrl({ publicUrl: 'https://example.com:8443/calls' })(from)).toBe('wss://example.com:8443/calls/v1/ws')
  expect(createWsUrl({ publicUrl: 'http://intern.test:81' })(from)).toBe('ws://intern.test:81/v1/ws')
})

test('[TOK6] without one: ws only for plain HTTP to this machine', () => {
  const wsUrl = createWsUrl({ publicUrl: null })
  expect(wsUrl('http://127.0.0.1:8080/x')).toBe('ws://127.0.0.1:8080/v1/ws')
  expect(wsUrl('http://localhost:8080/x')).toBe('ws://localhost:8080/v1/ws')
  expect(wsUrl('http://[::1]:8080/x')).toBe('ws://[::1]:8080/v1/ws')
  expect(wsUrl('https://localhost:8443/x')).toBe('wss://localhost:8443/v1/ws')
  expect(wsUrl('http://calls.example.com/x')).toBe('wss://calls.example.com/v1/ws')
  expect(wsUrl('http://192.168.0.2:8080/x')).toBe('wss://192.168.0.2:8080/v1/ws')
})
