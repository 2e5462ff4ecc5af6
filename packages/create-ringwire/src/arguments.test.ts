import { expect, test } from 'bun:test'
import { productOf, readArguments, UsageError, usage } from './arguments.mjs'

const read = (line: string, env: Record<string, string> = {}) => readArguments(line.split(' ').filter(Boolean), env)

test('nothing has to be given', () => {
  const nothing = { folder: undefined, flavour: undefined, product: undefined, service: undefined, packages: undefined }
  expect(read('')).toEqual({ ...nothing, port: 3000, yes: false, help: false })
})

test('everything can be given, in any order', () => {
  expect(read('--plain my-app --product shop --service ../calls --port 4000 --packages p -y')).toEqual({
    ...{ folder: 'my-app', flavour: 'plain', product: 'shop', service: '../calls', port: 4000, packages: 'p' },
    ...{ yes: true, help: false },
  })
  expect(read('--react').flavour).toBe('react')
  expect(read('-h').help).toBe(true)
})

test('RINGWIRE_PACKAGES counts where --packages is not given', () => {
  const env = { RINGWIRE_PACKAGES: '/packed' }
  expect(read('', env).packages).toBe('/packed')
  expect(read('--packages here', env).packages).toBe('here')
  expect(read('', { RINGWIRE_PACKAGES: '' }).packages).toBeUndefined()
})

test('what cannot be meant is refused, and the message names it', () => {
  for (const [line, message] of [
    ['a b', 'Give one folder, not 2: a, b'],
    ['--react --plain', '--react or --plain'],
    ['--vue', '--vue'],
    ['--product', '--product'],
    ['--product a:b', 'A product is'],
    ['--product -x', '--product'],
    ['--port 0', '--port is a number'],
    ['--port 65536', '--port is a number'],
    ['--port x', '--port is a number'],
  ] as const) {
    expect(() => read(line)).toThrow(UsageError)
    expect(() => read(line)).toThrow(message)
  }
})

test('the product that is offered is the name of the folder, as far as a product may be called that', () => {
  expect(['/home/ann/shop', '/a/My shop & café', '/a/.hidden', '/', `/${'x'.repeat(80)}`].map(productOf)).toEqual([
    ...['shop', 'My-shop-caf-', 'hidden', 'phone', 'x'.repeat(64)],
  ])
})

test('the usage names each option', () => {
  for (const name of ['react', 'plain', 'product', 'service', 'port', 'packages', 'yes', 'help'])
    expect(usage).toContain(`--${name} `)
})
