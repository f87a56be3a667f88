"""What the tests of the NGINX modules share."""
