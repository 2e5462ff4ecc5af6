import { registerRedisContract } from './redis-contract.ts'
import { openTwo } from './redis-harness.ts'

registerRedisContract('redis, two nodes', openTwo)
