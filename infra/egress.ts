import { CfnOutput, Fn, Stack } from 'aws-cdk-lib';
import {
  CfnEIP,
  GatewayVpcEndpointAwsService,
  IpAddresses,
  NatProvider,
  Peer,
  Port,
  SecurityGroup,
  SubnetType,
  Vpc,
} from 'aws-cdk-lib/aws-ec2';
import { Policy, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { CfnFunction } from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import { acknowledge } from './acknowledge.ts';
import type { CellFunction } from './cell-function.ts';

/** Permissions that Lambda needs to attach functions to subnets. None of them can be limited to a resource. */
const ATTACH = [
  'CreateNetworkInterface',
  'DescribeNetworkInterfaces',
  'DescribeSubnets',
  'DeleteNetworkInterface',
  'AssignPrivateIpAddresses',
  'UnassignPrivateIpAddresses',
];

interface Props {
  /** Functions that send requests to addresses outside AWS. */
  readonly functions: readonly CellFunction[];
  readonly natGateways: number;
}

/**
 * Static addresses for outbound requests: functions in private subnets, behind NAT gateways with elastic IP addresses. Requests to
 * DynamoDB take the gateway endpoint, which costs nothing; those to other AWS services take the NAT gateways.
 */
export class Egress extends Construct {
  constructor(scope: Construct, id: string, { functions, natGateways }: Props) {
    super(scope, id);
    const addresses = Array.from({ length: natGateways }, (_, at) => new CfnEIP(this, `Address${at + 1}`));
    const vpc = new Vpc(this, 'Vpc', {
      ipAddresses: IpAddresses.cidr('10.0.0.0/22'),
      maxAzs: Math.max(2, natGateways),
      natGateways,
      natGatewayProvider: NatProvider.gateway({
        eipAllocationIds: addresses.map(({ attrAllocationId }) => attrAllocationId),
      }),
      subnetConfiguration: [
        { name: 'Public', subnetType: SubnetType.PUBLIC, mapPublicIpOnLaunch: false, cidrMask: 27 },
        { name: 'Private', subnetType: SubnetType.PRIVATE_WITH_EGRESS, cidrMask: 24 },
      ],
      gatewayEndpoints: { Tables: { service: GatewayVpcEndpointAwsService.DYNAMODB } },
    });
    acknowledge(vpc, {
      'AwsSolutions-VPC7':
        'Nothing in the subnets accepts connections; outbound requests are in the logs of the functions.',
    });
    const group = new SecurityGroup(this, 'Outbound', {
      vpc,
      description: 'Jobwire: outbound requests over TCP, and no inbound connections',
      allowAllOutbound: false,
    });
    // The URL of a webhook may name any port.
    group.addEgressRule(Peer.anyIpv4(), Port.allTcp(), 'Ordering API, webhooks, AWS services');
    for (const fn of functions) {
      (fn.node.defaultChild as CfnFunction).vpcConfig = {
        subnetIds: vpc.privateSubnets.map(({ subnetId }) => subnetId),
        securityGroupIds: [group.securityGroupId],
      };
      // Until the routes to the NAT gateways and to DynamoDB exist, requests would fail.
      fn.node.addDependency(vpc);
    }
    // Lambda deletes the network interfaces of a function with its permissions, minutes after the function has left the subnets, which
    // cannot be deleted before. So the permissions are deleted last: the subnets depend on them.
    const attach = new Policy(this, 'Attach', {
      roles: functions.flatMap(({ role }) => role ?? []),
      statements: [
        new PolicyStatement({ actions: ATTACH.map((action) => `ec2:${action}`), resources: ['*'] }),
      ],
    });
    acknowledge(attach, {
      'AwsSolutions-IAM5[Resource::*]':
        'The permissions to attach a function to a subnet cannot be limited to a resource.',
    });
    vpc.node.addDependency(attach);
    new CfnOutput(Stack.of(this), 'EgressAddresses', {
      value: Fn.join(
        ' ',
        addresses.map(({ attrPublicIp }) => attrPublicIp),
      ),
    });
  }
}
