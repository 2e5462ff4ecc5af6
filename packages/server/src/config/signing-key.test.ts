import { expect, test } from 'bun:test'
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { algorithmOf, makeSigningKey, publicJwks, readSigningKey } from './signing-key.ts'

const pemOf = (key: KeyObject, type: 'pkcs8' | 'sec1' | 'spki' = 'pkcs8') =>
  key.export({ format: 'pem', type }) as string
const read = (pem: string) => {
  const answer = readSigningKey(pem)
  return answer.ok ? algorithmOf(answer.key) : answer.problem
}

test('[KEY1] keys that are made here, and those of openssl, in both of their forms', () => {
  expect([read(makeSigningKey('EdDSA')), read(makeSigningKey('ES256'))]).toEqual(['EdDSA', 'ES256'])
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const sec1 = pemOf(privateKey, 'sec1')
  expect([read(pemOf(privateKey)), read(sec1)]).toEqual(['ES256', 'ES256'])
  // As `openssl ecparam -genkey` writes it.
  expect(read(`-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${sec1}`)).toBe('ES256')
})

test('[KEY1] [LOG1] what is wrong with a key is said, and nothing of it is shown', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const wanted = 'wanted is Ed25519 or P-256'
  const ofCurve = (namedCurve: string) => pemOf(generateKeyPairSync('ec', { namedCurve }).privateKey)
  const encrypted = privateKey.export({
    format: 'pem',
    type: 'pkcs8',
    cipher: 'aes-128-cbc',
    passphrase: 'x',
  }) as string
  const broken = pemOf(privateKey).replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA')
  const cases: [string, string][] = [
    [pemOf(publicKey, 'spki'), 'holds a public key; the private one is needed'],
    ['-----BEGIN RSA PUBLIC KEY-----\nAA==', 'holds a public key; the private one is needed'],
    ['-----BEGIN CERTIFICATE-----\nAA==', 'holds a certificate; the private key is needed'],
    [ofCurve('P-384'), `holds a key of secp384r1; ${wanted}`],
    [ofCurve('P-521'), `holds a key of secp521r1; ${wanted}`],
    [pemOf(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey), `holds a key of rsa; ${wanted}`],
    [pemOf(generateKeyPairSync('x25519').privateKey), `holds a key of x25519; ${wanted}`],
    // Ed448, as openssl writes it: the runtime does not know it.
    [
      '-----BEGIN PRIVATE KEY-----\nMEcCAQAwBQYDK2VxBDsEOWyCpWLLgI0Q1jK+ichRPr9skp803fqMn2PJlg7241ikqdqi9k6obTYu3KDBa4/f7m2/9AaFcVC3lg==\n-----END PRIVATE KEY-----\n',
      `holds a key of another kind; ${wanted}`,
    ],
    [encrypted, 'holds an encrypted key; it is read without a passphrase'],
    [broken, 'holds no private key that can be read (PEM)'],
    ['hunter2', 'holds no private key (PEM)'],
    [JSON.stringify(privateKey.export({ format: 'jwk' })), 'holds no private key (PEM)'],
  ]
  for (const [pem, problem] of cases) expect(read(pem)).toBe(problem)
})

test('[KEY1] the document only has public members, and no secret', () => {
  const ed = createPrivateKey(makeSigningKey('EdDSA'))
  const ec = createPrivateKey(makeSigningKey('ES256'))
  const secret = Buffer.alloc(32, 7)
  const { keys } = publicJwks([
    { kid: 'e', key: ed },
    { kid: 'h', key: secret },
    { kid: 'c', key: ec },
  ])
  const publicOf = (key: KeyObject) => createPublicKey(key).export({ format: 'jwk' }) as object
  expect(keys as object[]).toEqual([
    { ...publicOf(ed), kid: 'e', alg: 'EdDSA', use: 'sig' },
    { ...publicOf(ec), kid: 'c', alg: 'ES256', use: 'sig' },
  ])
  expect(keys.map((key) => Object.keys(key).sort().join())).toEqual([
    'alg,crv,kid,kty,use,x',
    'alg,crv,kid,kty,use,x,y',
  ])
  expect(publicJwks([{ kid: 'h', key: secret }])).toEqual({ keys: [] })
})
