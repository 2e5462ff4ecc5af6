import { expect, test } from 'bun:test'
import { splitNats } from './nats.ts'

const split = (text: string) => splitNats(Buffer.from(text)).map((message) => Buffer.from(message).toString())

test('a frame of NATS is taken apart into its messages', () => {
  const one = 'MSG receiver 1 sender 9\r\na\r\nb\r\nccc\r\n'
  const without = 'MSG receiver 1 2\r\nhi\r\n'
  expect(split(`${one}PING\r\n${without}${one}`)).toEqual([one, 'PING\r\n', without, one])
  expect(split('INFO {"a":1}\r\n')).toEqual(['INFO {"a":1}\r\n'])
  expect(split('')).toEqual([])
})

test('half a line is an error', () => {
  expect(() => split('PONG\r\nPI')).toThrow('without its end')
})
